"""Engines: where the work on groups of rows runs, in this process or on the workers of a Dask cluster."""

from mercer.data.engines.choose import as_engine, using_engine
from mercer.data.engines.engine import Arrays, Engine, added, grouped
from mercer.data.engines.labels import Labels, labels_of
from mercer.data.engines.sample import most_rows, sample_with
from mercer.data.engines.serial import SerialEngine

__all__ = [
    "Arrays",
    "Engine",
    "Labels",
    "SerialEngine",
    "added",
    "as_engine",
    "grouped",
    "labels_of",
    "most_rows",
    "sample_with",
    "using_engine",
]
