"""Where work on groups of rows runs: in this process, or on a Dask cluster. For the `client` of `KernelRidge`."""

from typing import TYPE_CHECKING, Any

from mercer.data.engines import Engine, SerialEngine
from mercer.data.engines.choose import dask_module

if TYPE_CHECKING:
    from mercer.data.engines.dask import DaskEngine

__all__ = ["DaskEngine", "Engine", "SerialEngine"]


def __getattr__(name: str) -> Any:
    if name == "DaskEngine":
        return dask_module().DaskEngine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
