"""Rows from arrays, memory maps, files and iterators, read in parts."""

from mercer.data.rows.arrays import ArrayRows, npy_rows
from mercer.data.rows.dask import DaskRows, is_dask
from mercer.data.rows.held import HeldRows
from mercer.data.rows.parquet import ParquetRows
from mercer.data.rows.source import Chunk, Part, RowSource, sample_rows
from mercer.data.rows.spooled import chunk_rows
from mercer.data.rows.stream import read_ahead
from mercer.data.rows.views import ColumnRows, ScaledRows, SelectedRows

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
