"""Rows from arrays, memory maps, files and iterators, read in parts."""

from mercer.data.rows.arrays import ArrayRows, npy_rows
from mercer.data.rows.coded import CodedRows, signs_of
from mercer.data.rows.dask import DaskRows, is_dask
from mercer.data.rows.held import HeldRows
from mercer.data.rows.parquet import ParquetRows
from mercer.data.rows.source import Chunk, Part, RowSource, picked, sample_rows
from mercer.data.rows.spooled import chunk_rows
from mercer.data.rows.stream import read_ahead
from mercer.data.rows.tables import (
    DaskTables,
    EncodedRows,
    ParquetTables,
    SelectedTables,
    sampled_table,
    table_of,
)
from mercer.data.rows.views import ColumnRows, ScaledRows, SelectedRows

__all__ = [
    "ArrayRows",
    "Chunk",
    "CodedRows",
    "ColumnRows",
    "DaskRows",
    "DaskTables",
    "EncodedRows",
    "HeldRows",
    "ParquetRows",
    "ParquetTables",
    "Part",
    "RowSource",
    "ScaledRows",
    "SelectedRows",
    "SelectedTables",
    "chunk_rows",
    "is_dask",
    "npy_rows",
    "picked",
    "read_ahead",
    "sample_rows",
    "sampled_table",
    "signs_of",
    "table_of",
]
