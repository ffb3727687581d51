"""KernelRidge on a cluster of processes: the same predictions as in one process, also when workers are killed."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import signal
import threading
import time

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from sklearn.base import clone

import mercer
from mercer import KernelClassifier, KernelRidge, tabular
from mercer.core.errors import ClusterError, InputError, InputTypeError
from mercer.engines import DaskEngine, SerialEngine
from mercer.estimators.ridge.plan import plan_source
from mercer.kernels import Gaussian
from mercer.rows import ArrayRows, DaskRows, ParquetRows, npy_rows

rng = np.random.default_rng(0)
X = rng.standard_normal((600, 3))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(600)
w = rng.integers(0, 3, 600).astype(float)
NEW = rng.standard_normal((100, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, w=w)

NYSTROM = {"solver": "nystrom", "n_landmarks": 40}
SOLVERS = [
    NYSTROM,
    {"solver": "nystrom", "n_landmarks": 40, "alpha": "loo"},
    {"solver": "falkon", "n_landmarks": 40, "tol": 1e-9},
    {"solver": "random_features", "n_features": 50},
]


@pytest.fixture(scope="module")
def client():
    """Two workers, each a process; a worker may take its time to come back on a busy machine."""
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "120s"}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def ridge(**options):
    return KernelRidge(Gaussian(1.5), **({"alpha": 0.3} | options))


ROUNDING = 1e-10
"""Processes differ in the last bits: on some processors, matrix products depend on where in memory arrays lie."""


def relative(found, expected):
    return np.linalg.norm(np.asarray(found) - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize("options", SOLVERS, ids=lambda options: "-".join(map(str, options.values())))
def test_a_cluster_gives_the_fit_of_one_process(options, client):
    expected = ridge(**options).fit(X, y, w).predict(NEW)
    source = ArrayRows(X, y, w, rows_at_once=100)
    model = ridge(**options, client=DaskEngine(client, group_rows=150)).fit(source)
    assert relative(model.predict(NEW), expected) < 1e-8
    here = ridge(**options, client=SerialEngine(group_rows=150)).fit(source)
    assert relative(model.predict(NEW), here.predict(NEW)) < ROUNDING
    assert model.lambda_ == here.lambda_ == pytest.approx(ridge(**options).fit(source).lambda_)
    assert "6 parts by the Dask cluster" in model.solver_report_.reason


def test_classes_and_their_tables_on_a_cluster_are_those_of_one_process(client):
    kinds = np.where(y > 0, "high", "low")
    options = {"alpha": 0.3, "landmarks": X[:40]}
    expected = (
        KernelClassifier(Gaussian(1.5), **options).fit(ArrayRows(X, kinds, w, rows_at_once=100)).predict_proba(NEW)
    )
    for source in (
        ArrayRows(X, kinds, w, rows_at_once=100),
        DaskRows(dd.from_pandas(FRAME[["a", "b", "c"]], 4), kinds, w),
    ):
        model = KernelClassifier(Gaussian(1.5), client=DaskEngine(client, group_rows=150), **options).fit(source)
        np.testing.assert_allclose(model.predict_proba(NEW), expected, atol=1e-7)
        assert (model.predict(source) == model.predict(X)).all()
        assert "by the Dask cluster" in model.solver_report_.reason
    table = dd.from_pandas(FRAME.assign(city=np.where(X[:, 0] > 0, "Oslo", "Rome")).drop(columns="w"), npartitions=3)
    found = tabular(KernelRidge(alpha=0.3, n_landmarks=30)).fit(table, "y")
    assert "by the Dask cluster" in found.estimator_.solver_report_.reason
    assert found.score(table, "y") > 0.5


@pytest.mark.parametrize("options", SOLVERS, ids=lambda options: "-".join(map(str, options.values())))
def test_neither_parts_nor_groups_change_the_answer(options):
    expected = ridge(**options).fit(X, y, w).predict(NEW)
    for rows_at_once, group_rows in ((600, None), (50, 60), (37, 200)):
        source = ArrayRows(X, y, w, rows_at_once=rows_at_once)
        model = ridge(**options, client=SerialEngine(group_rows)).fit(source)
        assert relative(model.predict(NEW), expected) < 1e-8


def test_a_smooth_kernel_with_landmarks_that_are_almost_dependent_loses_no_digits():
    options = {"solver": "nystrom", "n_landmarks": 200, "alpha": 0.01}
    expected = ridge(**options).fit(X, y).predict(NEW)
    model = ridge(**options)
    for rows_at_once in (600, 100, 31):
        model.fit(ArrayRows(X, y, rows_at_once=rows_at_once))
        assert relative(model.predict(NEW), expected) < 1e-7
    order = rng.permutation(len(X))
    parts = ridge(**options | {"landmarks": model.X_fit_})
    for part in np.array_split(order, 5):
        parts.partial_fit(X[part], y[part])
    assert relative(parts.predict(NEW), expected) < 1e-7
    kernel, Z = Gaussian(1.5), model.X_fit_
    values, vectors = np.linalg.eigh(kernel(Z))
    E = (vectors / np.sqrt(values.clip(1e-300)))[:, values > 1e-13 * values.max()]
    system = np.vstack([kernel(X, Z) @ E, np.sqrt(0.01) * np.eye(E.shape[1])])
    u = np.linalg.lstsq(system, np.append(y, np.zeros(E.shape[1])))[0]
    assert relative(kernel(NEW, Z) @ E @ u, expected) < 2e-3  # what rounding of K_mm does to the problem itself


def sources(folder):
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    FRAME.drop(columns="w").to_parquet(folder / "rows.parquet", row_group_size=200)
    mapped = np.load(folder / "X.npy", mmap_mode="r")
    return {
        "npy": npy_rows(folder / "X.npy", folder / "y.npy", rows_at_once=100),
        "memory map": ArrayRows(mapped, np.load(folder / "y.npy", mmap_mode="r"), rows_at_once=100),
        "array": ArrayRows(X, y, rows_at_once=100),
        "parquet": ParquetRows(folder / "rows.parquet", target="y"),
        "dask": DaskRows(da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=333)),
    }


def test_every_source_goes_to_a_cluster_and_its_predictions_come_back(client, tmp_path):
    expected = ridge(**NYSTROM).fit(X, y).predict(NEW)
    for name, source in sources(tmp_path).items():
        model = ridge(**NYSTROM, client=DaskEngine(client, group_rows=150)).fit(source)
        assert relative(model.predict(NEW), expected) < 1e-8, name
        assert relative(model.predict(source), model.predict(X)) < 1e-12, name


def test_files_are_sent_by_name_and_rows_in_memory_group_by_group(tmp_path):
    found = sources(tmp_path)
    for name in ("npy", "memory map", "parquet"):
        portion = found[name].portion(found[name].parts()[:2])
        assert len(pickle.dumps(portion)) < 10_000, name
    parts = found["array"].parts()[3:5]
    portion = found["array"].portion(parts)
    assert len(pickle.dumps(portion)) < 2 * 100 * 4 * 8 + 5_000
    np.testing.assert_array_equal(portion.load(parts[1]).X, X[400:500])


def test_dask_arrays_find_their_client_and_are_predicted_later(client):
    lazy, lazy_y = da.from_array(X, chunks=(200, 2)), da.from_array(y, chunks=500)
    model = ridge(**NYSTROM).fit(lazy, lazy_y, da.from_array(w, chunks=600))
    assert "the Dask cluster" in model.solver_report_.reason
    expected = ridge(**NYSTROM).fit(X, y, w).predict(NEW)
    found = model.predict(da.from_array(NEW, chunks=(30, 3)))
    assert isinstance(found, da.Array)
    assert found.chunks == ((30, 30, 30, 10),)
    assert relative(found.compute(), expected) < 1e-8
    assert model.score(lazy, lazy_y) == pytest.approx(model.score(X, y))
    single = model.predict(da.from_array(NEW.astype(np.float32), chunks=30))
    assert single.dtype == single.compute().dtype == np.float32


def test_dask_data_frames_keep_their_names_and_give_targets_by_name(client):
    frame = dd.from_pandas(FRAME, npartitions=4)
    expected = ridge(**NYSTROM).fit(X, y, w).predict(NEW)
    model = ridge(**NYSTROM).fit(frame[["a", "b", "c"]], frame["y"], frame["w"])
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert relative(model.predict(pd.DataFrame(NEW, columns=["a", "b", "c"])), expected) < 1e-8
    named = ridge(**NYSTROM).fit(frame, "y", "w")
    later = named.predict(dd.from_pandas(pd.DataFrame(NEW, columns=["a", "b", "c"]), npartitions=3))
    assert relative(later.compute(), expected) < 1e-8
    both = ridge(**NYSTROM).fit(frame[["a", "b", "c", "y"]], ["y"])
    assert both.predict(frame[["a", "b", "c"]]).compute().shape == (600, 1)


def test_blocks_of_unknown_length_are_counted_first(client):
    lazy = da.from_array(X, chunks=(200, 3))
    some = lazy[lazy[:, 0] > 0]
    targets = da.from_array(y, chunks=200)[lazy[:, 0] > 0]
    model = ridge(**NYSTROM).fit(some, targets)
    assert relative(model.predict(NEW), ridge(**NYSTROM).fit(X[X[:, 0] > 0], y[X[:, 0] > 0]).predict(NEW)) < 1e-8


def test_without_a_cluster_dask_collections_are_read_here():
    with dask.config.set(scheduler="sync"):
        source = DaskRows(da.from_array(X, chunks=(400, 3)), y)
        model = ridge(**NYSTROM, client=SerialEngine()).fit(source)
    assert relative(model.predict(NEW), ridge(**NYSTROM).fit(X, y).predict(NEW)) < 1e-8


def test_bad_collections_are_refused(client):
    lazy = da.from_array(X, chunks=(200, 3))
    with pytest.raises(InputError, match="y has 500 rows but X has 600"):
        ridge().fit(lazy, da.from_array(y[:500], chunks=200))
    with pytest.raises(InputError, match="has no column 'z'"):
        ridge().fit(dd.from_pandas(FRAME, npartitions=2), "z")
    with pytest.raises(InputTypeError, match="'t' of X has dtype"):
        ridge().fit(dd.from_pandas(FRAME.assign(t="text"), npartitions=2), "y")
    bad = np.where(np.arange(600)[:, None] == 530, np.nan, X)
    with pytest.raises(InputError, match="NaN: row 130, column 0 of block 2 of the Dask array"):
        ridge(**NYSTROM).fit(da.from_array(bad, chunks=(200, 3)), y)
    with pytest.raises(InputError, match="2 features but 3 are expected"):
        ridge(**NYSTROM).fit(lazy, y).predict(lazy[:, :2])
    with pytest.raises(InputError, match="wrap arrays in mercer.rows.ArrayRows"):
        ridge(client=client).fit(X, y)
    with pytest.raises(ClusterError, match="no scheduler at"):
        ridge(client=DaskEngine("tcp://127.0.0.1:9", patience=0.2)).fit(lazy, y)


def test_a_connection_is_not_part_of_the_model(client, tmp_path):
    model = ridge(**NYSTROM, client=client).fit(ArrayRows(X, y, rows_at_once=200))
    assert clone(model).client is client
    assert model.client is client
    twin = pickle.loads(pickle.dumps(model))
    assert twin.client is None
    model.save(tmp_path / "model")
    for other in (twin, mercer.load(tmp_path / "model")):
        np.testing.assert_array_equal(other.predict(NEW), model.predict(NEW))


class Vanishing(ArrayRows):
    """Rows of which a part cannot be read any more once a file is there."""

    def __init__(self, sign):
        super().__init__(X, y, w, rows_at_once=25)
        self.sign = sign

    def portion(self, parts):
        return self

    def load(self, part):
        if part.before == 450 and self.sign.exists():
            raise InputError("gone")
        return super().load(part)


def test_a_fit_on_a_cluster_goes_on_from_its_checkpoint(client, tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.data.checkpoint.SECONDS", 0.0)
    monkeypatch.setattr("mercer.data.engines.engine.BUNCH", 4)
    path, sign = tmp_path / "fit.checkpoint", tmp_path / "sign"
    engine = DaskEngine(client, group_rows=50)
    expected = ridge(**NYSTROM, client=engine).fit(Vanishing(sign)).predict(NEW)
    model = ridge(**NYSTROM, client=engine, checkpoint=path)

    def planned(*args):
        plan = plan_source(*args)
        sign.touch()
        return plan

    with monkeypatch.context() as patch:
        patch.setattr("mercer.estimators.ridge.alpha.plan_source", planned)
        with pytest.raises(InputError, match="gone"):
            model.fit(Vanishing(sign))
    sign.unlink()
    assert path.exists()
    read = []
    monkeypatch.setattr(DaskEngine, "map_groups", count_groups(DaskEngine.map_groups, read))
    assert relative(model.fit(Vanishing(sign)).predict(NEW), expected) < ROUNDING
    assert 0 < read[-1] < 12
    assert not path.exists()


def count_groups(original, seen):
    def map_groups(self, work, source, groups, *shared):
        seen.append(len(groups))
        return original(self, work, source, groups, *shared)

    return map_groups


class Slow(ArrayRows):
    """Rows that take their time, so that a worker can be killed while it has some."""

    def portion(self, parts):
        return self

    def load(self, part):
        time.sleep(0.02)
        return super().load(part)


class Killer(threading.Thread):
    """Kills a worker with SIGKILL now and then."""

    def __init__(self, client, kills, longest, seed=0):
        super().__init__(daemon=True)
        self.client, self.left, self.longest, self.random = client, kills, longest, random.Random(seed)
        self.killed, self.done = 0, threading.Event()

    def run(self):
        while self.left and not self.done.wait(self.random.uniform(0.1, self.longest)):
            there = list(self.client.run(os.getpid, on_error="ignore").values())
            if there:
                os.kill(self.random.choice(there), signal.SIGKILL)
                self.left, self.killed = self.left - 1, self.killed + 1


def workers_are_back(client):
    """Both, or one: a worker that was killed while it started stays away."""
    with contextlib.suppress(TimeoutError):
        client.wait_for_workers(2, timeout=20)
    client.wait_for_workers(1, timeout=60)


@pytest.mark.parametrize("options", [NYSTROM, {"solver": "falkon", "n_landmarks": 40, "max_iter": 2}])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_worker_that_is_killed_costs_time_but_not_the_fit(options, client):
    workers_are_back(client)
    source, engine = Slow(X, y, rows_at_once=25), DaskEngine(client, group_rows=100)
    expected = ridge(**options, client=SerialEngine(group_rows=100)).fit(source).predict(NEW)
    killer = Killer(client, kills=1, longest=0.6)
    killer.start()
    model = ridge(**options, client=engine).fit(source)
    killer.done.set()
    killer.join()
    assert killer.killed == 1
    assert relative(model.predict(NEW), expected) < ROUNDING


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_twenty_workers_killed_at_random_times_cost_no_fit(client):
    options = [NYSTROM, {"solver": "falkon", "n_landmarks": 40, "max_iter": 5}]
    source, engine = Slow(X, y, rows_at_once=10), DaskEngine(client, group_rows=100)
    here = SerialEngine(group_rows=100)
    expected = [ridge(**each, client=here).fit(source).predict(NEW) for each in options]
    killer = Killer(client, kills=20, longest=4.0)
    killer.start()
    while killer.left:
        for each, wanted in zip(options, expected, strict=True):
            assert relative(ridge(**each, client=engine).fit(source).predict(NEW), wanted) < ROUNDING
    killer.join()
    assert killer.killed == 20


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_work_that_kills_every_worker_is_given_up(client, monkeypatch):
    workers_are_back(client)
    monkeypatch.setattr("mercer.data.engines.dask.MOST_DEATHS", 0)
    with pytest.raises(ClusterError, match="Workers keep dying"):
        ridge(**NYSTROM, client=DaskEngine(client, group_rows=2000)).fit(Deadly(X, y))


class Deadly(ArrayRows):
    """Rows that kill who reads them, unless that is this process."""

    def __init__(self, *arrays):
        super().__init__(*arrays)
        self.home = os.getpid()

    def portion(self, parts):
        return self

    def load(self, part):
        if os.getpid() != self.home:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().load(part)
