"""Rows from arrays, memory maps, files and iterators, read in parts."""

from mercer.core.rows.arrays import ArrayRows, npy_rows
from mercer.core.rows.dask import DaskRows, is_dask
from mercer.core.rows.held import HeldRows
from mercer.core.rows.parquet import ParquetRows
from mercer.core.rows.source import Chunk, Part, RowSource, sample_rows
from mercer.core.rows.spooled import chunk_rows
from mercer.core.rows.stream import read_ahead
from mercer.core.rows.views import ColumnRows, ScaledRows, SelectedRows

__all__ = [
    "ArrayRows",
    "Chunk",
    "ColumnRows",
    "DaskRows",
    "HeldRows",
    "ParquetRows",
    "Part",
    "RowSource",
    "ScaledRows",
    "SelectedRows",
    "chunk_rows",
    "is_dask",
    "npy_rows",
    "read_ahead",
    "sample_rows",
]
