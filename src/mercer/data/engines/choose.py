"""The engine for what a user gave as `client`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mercer.core.errors import InputError, InputTypeError
from mercer.data.engines.engine import Engine
from mercer.data.rows.source import RowSource

METHODS = ("broadcast", "map_groups", "reduce", "close")


def as_engine(client: Any, source: RowSource | None = None) -> Engine | None:
    """The engine for a Dask client, the address of a scheduler or an engine; None where work is done here.

    Without a client, the rows of a Dask collection are worked on by the client that is active, if there is one.

    >>> as_engine(None) is None
    True
    """
    if client is None:
        client = _active_client() if getattr(source, "on_dask", False) else None
        if client is None:
            return None
    if not all(hasattr(client, name) for name in METHODS):
        if not isinstance(client, str) and not (hasattr(client, "scheduler_info") and hasattr(client, "submit")):
            raise InputTypeError(
                f"client={client!r}: expected a dask.distributed.Client, the address of a scheduler such as "
                "'tcp://host:8786', or an engine."
            )
        client = dask_module().DaskEngine(client)
    engine: Engine = client
    return engine


@contextmanager
def using_engine(client: Any, source: RowSource | None = None) -> Iterator[Engine | None]:
    """The engine of `as_engine`, closed in the end: a connection by address ends, a client that was given stays open.

    >>> with using_engine(None) as engine:
    ...     print(engine)
    None
    """
    engine = as_engine(client, source)
    try:
        yield engine
    finally:
        if engine is not None:
            engine.close()


def dask_module() -> Any:
    """The module with `DaskEngine`; Dask is imported when it is needed."""
    try:
        importlib.import_module("distributed")
    except ImportError:
        raise InputError("Work on a cluster needs Dask: pip install 'mercer[dask]'.") from None
    return importlib.import_module("mercer.data.engines.dask")


def _active_client() -> Any:
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None
