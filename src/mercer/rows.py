"""Sources of rows that need not fit in memory: `KernelRidge.fit` and `predict` take them in place of arrays."""

from mercer.data.rows import ArrayRows, Chunk, DaskRows, ParquetRows, Part, RowSource, chunk_rows, npy_rows

__all__ = ["ArrayRows", "Chunk", "DaskRows", "ParquetRows", "Part", "RowSource", "chunk_rows", "npy_rows"]
