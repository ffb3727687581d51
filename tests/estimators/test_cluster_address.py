"""A cluster by the address of its scheduler: no client of the user's is needed, and none is left behind."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pytest
from distributed import Client, LocalCluster, default_client

from mercer import KernelRidge
from mercer.core.errors import ClusterError
from mercer.engines import DaskEngine
from mercer.kernels import Gaussian
from mercer.rows import ArrayRows

rng = np.random.default_rng(0)
X = rng.standard_normal((600, 3))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
NEW = rng.standard_normal((50, 3))
SOURCE = ArrayRows(X, y, rows_at_once=100)


@pytest.fixture(scope="module")
def cluster():
    """A scheduler and a worker in this process, with no client."""
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", protocol="tcp") as it:
        yield it


@pytest.fixture
def no_default():
    with pytest.raises(ValueError, match="No clients found"):
        default_client()


def ridge(client, **options):
    return KernelRidge(Gaussian(1.5), alpha=0.3, solver="nystrom", n_landmarks=30, client=client, **options)


def clients(cluster):
    """Connections of clients that the scheduler knows, once those that end have ended."""
    for _ in range(100):
        found = [name for name in cluster.scheduler.clients if name.startswith("Client")]
        if not found:
            break
        time.sleep(0.02)
    return len(found)


def test_the_address_of_a_scheduler_is_enough(cluster, no_default):
    address = cluster.scheduler_address
    assert address.startswith("tcp://")
    expected = ridge(None).fit(SOURCE)
    model = ridge(address).fit(SOURCE)
    assert f"by the Dask cluster at {address}" in model.solver_report_.reason
    np.testing.assert_allclose(model.predict(NEW), expected.predict(NEW), rtol=1e-9)
    np.testing.assert_allclose(model.predict(ArrayRows(NEW)), expected.predict(NEW), rtol=1e-9)
    assert model.client == address
    assert clients(cluster) == 0


def test_a_connection_by_address_ends_with_a_fit_that_fails(cluster, no_default):
    with pytest.raises(ValueError, match="contains NaN"):
        ridge(cluster.scheduler_address).fit(ArrayRows(np.where(X > 3, np.nan, X), y))
    assert clients(cluster) == 0


def test_a_client_that_was_given_stays_open(cluster):
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        model = ridge(client).fit(SOURCE)
        model.predict(ArrayRows(NEW))
        assert client.status == "running"
        ridge(DaskEngine(client)).fit(SOURCE)
        assert client.status == "running"


def test_an_engine_by_address_works_again_after_each_fit(cluster, no_default):
    engine = DaskEngine(cluster.scheduler_address, group_rows=200)
    expected = ridge(None).fit(SOURCE).predict(NEW)
    model = ridge(engine)
    for _ in range(2):
        np.testing.assert_allclose(model.fit(SOURCE).predict(NEW), expected, rtol=1e-9)
        np.testing.assert_allclose(model.predict(ArrayRows(NEW)), expected, rtol=1e-9)
    assert clients(cluster) == 0
    assert repr(engine) == f"the Dask cluster at {cluster.scheduler_address}"


def test_the_cluster_of_the_address_works_not_that_of_the_active_client(cluster):
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", protocol="tcp"
        ) as other,
        Client(other) as active,
    ):
        ridge(cluster.scheduler_address).fit(SOURCE)
        assert default_client() is active
        assert not other.scheduler.transition_log
        assert cluster.scheduler.transition_log


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_scheduler_of_its_own_process_is_found_by_its_address(tmp_path, no_default):
    """As the guide says: dask scheduler, dask worker, and the address."""
    file = tmp_path / "scheduler.json"
    start = ([sys.executable, "-m", "dask", role, "--scheduler-file", str(file)] for role in ("scheduler", "worker"))
    scheduler = subprocess.Popen([*next(start), "--port", "0", "--no-dashboard"], stderr=subprocess.DEVNULL)
    worker = subprocess.Popen([*next(start), "--nthreads", "1", "--no-nanny"], stderr=subprocess.DEVNULL)
    try:
        while not file.exists() or not file.read_text().strip():
            assert scheduler.poll() is None
            time.sleep(0.05)
        found = ridge(json.loads(file.read_text())["address"]).fit(SOURCE).predict(NEW)
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()
    np.testing.assert_allclose(found, ridge(None).fit(SOURCE).predict(NEW), rtol=1e-9)


def test_an_address_where_nobody_listens_is_named():
    with pytest.raises(ClusterError, match="There is no scheduler at 'tcp://127.0.0.1:9'"):
        DaskEngine("tcp://127.0.0.1:9", patience=0.2)
