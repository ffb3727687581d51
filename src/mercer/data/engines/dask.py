"""The engine that works on the machines of a Dask cluster."""

from __future__ import annotations

import copy
import time
import uuid
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import dask
import distributed
from dask import delayed

from mercer.core.errors import ClusterError, InputError
from mercer.data.dials import LONGEST_CALL, MOST_DEATHS, POLL
from mercer.data.engines.engine import Arrays, Merge, Work, bunches
from mercer.data.rows.source import Part, RowSource

ON = "With checkpoint= a fit goes on from where it was."


class DaskEngine:
    """Groups of rows are worked on by the workers of a Dask cluster, and their results are merged there.

    Whatever a worker needs is a task of its own, so that Dask can make it again when a worker dies: nothing is
    scattered. A task that has seen several workers die is taken up again, too.

    Parameters
    ----------
    client : dask.distributed.Client, str or None
        A `dask.distributed.Client`, which stays open, or the address of a scheduler: then the connection is the
        engine's own, `close` ends it, and the next work opens another.
    group_rows : int or None
        Rows of a task; by default as many as take a core about two seconds.
    patience : float
        Seconds to wait for a worker while there is none, and for an answer of the scheduler.
    """

    def __init__(self, client: Any, *, group_rows: int | None = None, patience: float = 60.0) -> None:
        if group_rows is not None and group_rows < 1:
            raise InputError(f"group_rows={group_rows}: must be at least 1.")
        self.group_rows, self.patience = group_rows, float(patience)
        self.address = client if isinstance(client, str) else None
        self._client = None if isinstance(client, str) else client
        self._connect()
        self._sent: dict[tuple[int, int, int], tuple[RowSource, Any]] = {}
        self._alone_since: float | None = None

    @property
    def client(self) -> Any:
        """The connection to the scheduler."""
        self._connect()
        return self._client

    def broadcast(self, value: Any) -> Any:
        return _Constant(value)

    def map_groups(self, work: Work, source: RowSource, groups: Sequence[list[Part]], *shared: Any) -> list[Any]:
        return [_Call(_Task(work, group), (self._rows(source, group), *shared)) for group in groups]

    def reduce(
        self,
        merge: Merge,
        results: Sequence[Any],
        start: Arrays | None = None,
        after: Callable[[int, Arrays], None] | None = None,
    ) -> Arrays:
        self._check_connection()
        self._alone_since = None
        total, done, waiting = start, 0, list(bunches(results))
        with self.client.as_current():  # another one may be the default, or none
            futures = self._submit(merge, waiting)
            try:
                for i, bunch in enumerate(waiting):
                    value = self._result(merge, bunch, futures, i)
                    futures[i] = None
                    total = value if total is None else merge(total, value)
                    done += len(bunch)
                    if after is not None:
                        after(done, total)
            except BaseException:
                self._cancel([future for future in futures if future is not None])
                raise
        if total is None:
            raise InputError("There are no rows.")
        return total

    def close(self) -> None:
        self._sent.clear()
        if self.address is not None and self._client is not None:
            self._client.close()
            self._client = None

    def __repr__(self) -> str:
        return f"the Dask cluster at {self.address or self.client.scheduler.address}"

    def __sklearn_clone__(self) -> DaskEngine:
        return self

    def _connect(self) -> None:
        if self._client is None and self.address is not None:
            self._client = _connected(self.address, min(self.patience, LONGEST_CALL))

    def _rows(self, source: RowSource, group: list[Part]) -> Any:
        """The rows of a group as a task; files are sent once, as their names, and rows in memory once as well."""
        whole, some = (id(source), 0, 0), (id(source), group[0].before, len(group))
        for name in (whole, some):
            if name in self._sent:
                return self._sent[name][1]
        portion = source.portion(group)
        if not isinstance(portion, RowSource):
            return portion
        sent = _Constant(portion)
        self._sent[some if portion.is_held else whole] = (source, sent)
        return sent

    def _submit(self, merge: Merge, several: Sequence[Sequence[_Call]]) -> list[Any]:
        """Tasks that work on bunches of groups and merge what comes out, group after group."""
        together = delayed(merge, pure=False)
        with _large_values():
            roots = [
                reduce(together, [delayed(call.task, pure=False, traverse=False)(*self._known(call)) for call in bunch])
                for bunch in several
            ]
            result: list[Any] = self.client.compute(roots, optimize_graph=False)
            return result

    def _known(self, call: _Call) -> list[Any]:
        """The arguments of a call, with constants as tasks that the scheduler knows."""
        known = []
        for value in call.arguments:
            if isinstance(value, _Constant):
                if value.future is None or value.future.status in ("error", "cancelled", "lost"):
                    value.future = self.client.submit(value.give(), key=f"mercer-constant-{uuid.uuid4().hex}")
                value = value.future
            known.append(value)
        return known

    def _result(self, merge: Merge, bunch: Sequence[_Call], futures: list[Any], i: int) -> Arrays:
        """What a bunch gives, however many workers die; waits as long as there are workers, or as patience lasts."""
        deaths = 0
        while True:
            try:
                distributed.wait(futures[i], timeout=POLL)
                result: Arrays = futures[i].result(timeout=self.patience)
                return result
            except TimeoutError:
                self._check_workers()
            except distributed.KilledWorker as error:
                deaths += 1
                if deaths > MOST_DEATHS:
                    raise ClusterError(
                        f"Workers keep dying on the same group of rows, the last one at {error.last_worker.address}: "
                        "they may be out of memory. Give them more, or smaller groups: "
                        f"DaskEngine(client, group_rows=...). {ON}"
                    ) from error
                futures[i].release()
                [futures[i]] = self._submit(merge, [bunch])
            except distributed.CancelledError as error:
                raise ClusterError(f"The scheduler has stopped, or the work was cancelled. {ON}") from error

    def _check_workers(self) -> None:
        self._check_connection()
        try:
            workers = self.client.sync(self.client.scheduler.ncores, callback_timeout=self.patience)
        except (OSError, TimeoutError) as error:
            raise ClusterError(f"The scheduler does not answer: {error}. {ON}") from error
        if workers:
            self._alone_since = None
            return
        now = time.monotonic()
        self._alone_since = now if self._alone_since is None else self._alone_since
        if now - self._alone_since > self.patience:
            raise ClusterError(
                f"The cluster has had no workers for {self.patience:.0f} seconds: start some, or wait longer for them "
                f"with DaskEngine(client, patience=...). {ON}"
            )

    def _check_connection(self) -> None:
        if self.client.status != "running":
            raise ClusterError(f"The client is not connected to a scheduler: it is {self.client.status}. {ON}")

    def _cancel(self, futures: list[Any]) -> None:
        if self.client.status == "running":
            self.client.cancel(futures, force=True)


class _Constant:
    """A value that workers need, and the task that gives it once it was sent.

    A task has a past: Dask makes it again when the workers that held the value die.
    """

    def __init__(self, value: Any) -> None:
        self.value, self.future = value, None

    def give(self) -> Callable[[], Any]:
        return _Give(self.value)


class _Give:
    """An object that Dask does not look into."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value


class _Call(NamedTuple):
    """Work on a group that can be sent, once or again."""

    task: _Task
    arguments: tuple[Any, ...]


class _Task:
    """Work on some parts; each task reads with a source of its own, because a worker may have several threads."""

    def __init__(self, work: Work, parts: list[Part]) -> None:
        self.work, self.parts = work, parts
        self.__name__ = f"mercer-{getattr(work, '__name__', 'work').strip('_')}"

    def __call__(self, rows: RowSource, *shared: Any) -> Arrays:
        return self.work(copy.copy(rows), self.parts, *shared)


def _connected(address: str, patience: float) -> Any:
    try:
        return distributed.Client(address, timeout=patience, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(f"There is no scheduler at {address!r}: {error}") from error


def _large_values() -> Any:
    """A graph with landmarks or rows in it is large, and meant to be."""
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"})
