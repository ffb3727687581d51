"""Engines: the same groups, the same sums, wherever they are worked on."""

from __future__ import annotations

import _thread
import signal
import threading
import time

import dask
import pytest
import torch
from distributed import Client, LocalCluster

from mercer.core.errors import ClusterError, InputError, InputTypeError
from mercer.data.dials import BUNCH
from mercer.data.engines import SerialEngine, added, as_engine, grouped, sample_with
from mercer.data.engines.dask import DaskEngine
from mercer.data.rows import ArrayRows, sample_rows
from mercer.data.rows.source import equal_parts

rows = torch.randn(1000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
SOURCE = ArrayRows(rows, rows[:, 0], rows[:, 1].abs(), rows_at_once=7)


@pytest.fixture(scope="module")
def client():
    """Two workers that are threads: quick to start, and nothing here needs a process."""
    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster) as client:
        yield client


def weighted_sums(source, parts, factor):
    chunks = [source.read(part) for part in parts]
    return {"sums": sum((factor * chunk.weights) @ chunk.X for chunk in chunks), "rows": torch.tensor(len(chunks))}


def run(engine, size=20, work=weighted_sums, **options):
    groups = grouped(SOURCE.parts(), size)
    return engine.reduce(added, engine.map_groups(work, SOURCE, groups, engine.broadcast(2.0)), **options)


@pytest.mark.parametrize("rows_of_a_group", [1, 7, 50, 10_000])
def test_groups_hold_every_part_once_in_order_and_go_on_from_any_of_them(rows_of_a_group):
    parts = equal_parts([30, 1, 12, 70], at_once=8)
    groups = grouped(parts, rows_of_a_group)
    assert [part for group in groups for part in group] == parts
    assert all(sum(map(len, group[:-1])) < rows_of_a_group for group in groups)
    for i in range(len(groups)):
        assert grouped(parts[sum(map(len, groups[:i])) :], rows_of_a_group) == groups[i:]


def test_an_engine_gives_the_sum_over_all_rows():
    expected = 2.0 * rows[:, 1].abs() @ rows
    for size in (1, 20, 333, 5000):
        torch.testing.assert_close(run(SerialEngine(), size)["sums"], expected)


@pytest.mark.parametrize("size", [8, 60, 5000])
def test_a_cluster_gives_the_same_bits_as_this_process(client, size):
    here, there = run(SerialEngine(), size), run(DaskEngine(client), size)
    assert torch.equal(here["sums"], there["sums"])
    assert torch.equal(here["rows"], there["rows"])


def test_sums_can_go_on_from_the_end_of_a_bunch_to_the_same_bits(client):
    groups = grouped(SOURCE.parts(), 20)
    for engine in (SerialEngine(), DaskEngine(client)):
        told = []
        whole = run(engine, after=lambda done, total, told=told: told.append((done, total)))
        assert [done for done, _ in told] == [*range(BUNCH, len(groups), BUNCH), len(groups)]
        done, start = told[1]
        rest = engine.map_groups(weighted_sums, SOURCE, groups[done:], engine.broadcast(2.0))
        assert torch.equal(engine.reduce(added, rest, start)["sums"], whole["sums"])


def test_a_sample_does_not_depend_on_who_draws_it(client):
    drawn = [torch.Generator().manual_seed(5) for _ in range(3)]
    expected = sample_rows(SOURCE, 60, drawn[0])
    for engine, generator in zip(
        (SerialEngine(group_rows=100), DaskEngine(client, group_rows=100)), drawn[1:], strict=True
    ):
        for found, wanted in zip(sample_with(engine, SOURCE, 60, generator), expected, strict=True):
            assert torch.equal(found, wanted)


def fails(source, parts, factor):
    raise InputError(f"part {parts[0].before} is bad")


def test_an_error_of_a_worker_arrives_as_it_is(client):
    with pytest.raises(InputError, match=r"part \d+ is bad"):
        run(DaskEngine(client), work=fails)
    assert torch.equal(run(DaskEngine(client))["sums"], run(SerialEngine())["sums"])


def test_no_scheduler_no_workers_and_a_closed_client_are_clear_errors():
    with pytest.raises(ClusterError, match=r"no scheduler at 'tcp://127.0.0.1:9'"):
        DaskEngine("tcp://127.0.0.1:9", patience=0.3)
    with LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster:
        with Client(cluster) as client, pytest.raises(ClusterError, match="no workers for 1 seconds"):
            run(DaskEngine(client, patience=1.0))
        with pytest.raises(ClusterError, match="it is closed"):
            run(DaskEngine(client))


def slow(source, parts, factor):
    time.sleep(0.2)
    return weighted_sums(source, parts, factor)


def test_a_scheduler_that_goes_away_in_between_is_a_clear_error():
    cluster = LocalCluster(n_workers=1, processes=False, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        timer = threading.Timer(0.7, cluster.close)
        timer.start()
        with pytest.raises(ClusterError, match=r"checkpoint="):
            run(DaskEngine(client, patience=5.0), work=slow)
        timer.join()


def unfinished(dask_scheduler):
    return [task.key for task in dask_scheduler.tasks.values() if task.state not in ("memory", "released", "forgotten")]


@pytest.fixture
def interruptible():
    """A process in the background may ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_takes_the_work_back(client):
    threading.Timer(0.5, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        run(DaskEngine(client), work=slow)
    deadline = time.monotonic() + 10
    while (left := client.run_on_scheduler(unfinished)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left


def test_what_is_a_client(client):
    assert as_engine(None) is None
    assert as_engine(None, SOURCE) is None
    engine = DaskEngine(client)
    assert as_engine(engine) is engine
    assert isinstance(as_engine(client), DaskEngine)
    with pytest.raises(InputTypeError, match="client=3"):
        as_engine(3)
    with pytest.raises(InputError, match="group_rows=0"):
        DaskEngine(client, group_rows=0)


def test_large_values_are_sent_without_a_warning(client, recwarn):
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1kB"}):
        run(DaskEngine(client))
    assert not [str(w.message) for w in recwarn if "large graph" in str(w.message)]
