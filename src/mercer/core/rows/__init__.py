"""Rows from arrays, memory maps, files and iterators, read in parts."""

from mercer.core.rows.arrays import ArrayRows, npy_rows
from mercer.core.rows.parquet import ParquetRows
from mercer.core.rows.source import Chunk, Part, RowSource, sample_rows
from mercer.core.rows.spooled import chunk_rows
from mercer.core.rows.stream import read_ahead

__all__ = [
    "ArrayRows",
    "Chunk",
    "ParquetRows",
    "Part",
    "RowSource",
    "chunk_rows",
    "npy_rows",
    "read_ahead",
    "sample_rows",
]
