"""Sources of rows that need not fit in memory: `fit`, `predict` and `score` take them in place of arrays."""

from mercer.data.rows import (
    ArrayRows,
    Chunk,
    DaskRows,
    DaskTables,
    ParquetRows,
    ParquetTables,
    Part,
    RowSource,
    chunk_rows,
    npy_rows,
)

__all__ = [
    "ArrayRows",
    "Chunk",
    "DaskRows",
    "DaskTables",
    "ParquetRows",
    "ParquetTables",
    "Part",
    "RowSource",
    "chunk_rows",
    "npy_rows",
]
