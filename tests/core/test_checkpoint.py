"""Checkpoints: written whole or not at all, refused where they cannot be, and never lost."""

from __future__ import annotations

import contextlib
import os

import numpy as np
import pytest
import torch

from mercer import KernelRidge
from mercer.core.errors import CheckpointError, InputError, InputTypeError
from mercer.core.files import replacing
from mercer.data.checkpoint import Checkpoint
from mercer.data.rows import ArrayRows
from mercer.kernels import Gaussian

resource = pytest.importorskip("resource")

rng = np.random.default_rng(0)
X, y = rng.standard_normal((1500, 3)), rng.standard_normal(1500)


@contextlib.contextmanager
def no_more_than(size):
    """No file may grow beyond this size, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_a_warning_and_the_checkpoint_before_stays(tmp_path):
    checkpoint = Checkpoint(tmp_path / "c", {"seed": 0})
    checkpoint.save(1, {"sum": torch.ones(10)})
    with no_more_than(2000), pytest.warns(UserWarning, match="the one before is kept and the fit goes on"):
        checkpoint.save(2, {"sum": torch.ones(10_000)})
    steps, arrays = checkpoint.load()
    assert steps == 1
    assert torch.equal(arrays["sum"], torch.ones(10))
    assert [file.name for file in tmp_path.iterdir()] == ["c"]


def test_a_fit_on_a_full_disk_ends_well_and_says_that_it_has_no_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.data.checkpoint.SECONDS", 0.0)
    model = KernelRidge(Gaussian(1.5), solver="nystrom", n_landmarks=40, checkpoint=tmp_path / "c", alpha=1.0)
    with no_more_than(4000), pytest.warns(UserWarning, match="could not be written; the fit goes on"):
        model.fit(ArrayRows(X, y, rows_at_once=500))
    expected = KernelRidge(Gaussian(1.5), solver="nystrom", n_landmarks=40, alpha=1.0).fit(
        ArrayRows(X, y, rows_at_once=500)
    )
    np.testing.assert_allclose(model.dual_coef_, expected.dual_coef_, rtol=1e-6)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    model = KernelRidge(solver="nystrom", n_landmarks=10, checkpoint=tmp_path / "none" / "c")
    with pytest.raises(InputError, match=r"the folder .*none does not exist"):
        model.fit(ArrayRows(X, y))
    with pytest.raises(InputError, match="is a folder"):
        model.set_params(checkpoint=tmp_path).fit(ArrayRows(X, y))
    with pytest.raises(InputTypeError, match="must be the path of a file"):
        model.set_params(checkpoint=3).fit(ArrayRows(X, y))

    def read_only(*_, **__):
        raise PermissionError(30, "Read-only file system")

    monkeypatch.setattr("mercer.data.checkpoint.tempfile.TemporaryFile", read_only)
    with pytest.raises(InputError, match="cannot be written: Read-only file system"):
        model.set_params(checkpoint=tmp_path / "c").fit(ArrayRows(X, y))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot be written: Permission denied"):
        Checkpoint(tmp_path / "c", {}).load()


def test_what_a_killed_process_left_half_written_is_removed(tmp_path):
    checkpoint = Checkpoint(tmp_path / "c", {"seed": 0})
    checkpoint.save(1, {"sum": torch.ones(10)})
    with contextlib.suppress(ZeroDivisionError), replacing(tmp_path / "c") as temporary:
        half = temporary.rename(tmp_path / f"{temporary.name[:-4]}0.tmp")
        half.write_bytes(b"half")
        raise ZeroDivisionError
    other = tmp_path / ".mercer-d-0.tmp"
    other.write_bytes(b"of another file")
    assert checkpoint.load()[0] == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == [other.name, "c"]


def test_a_state_that_is_not_finite_is_not_kept(tmp_path):
    checkpoint = Checkpoint(tmp_path / "c", {})
    checkpoint.save(1, {"sum": torch.ones(2)})
    checkpoint.save(2, {"sum": torch.tensor([1.0, float("nan")])})
    assert checkpoint.load()[0] == 1


class Ending(ArrayRows):
    """A source whose last part cannot be read once the pass has begun."""

    passes = 0

    def load(self, part):
        if part.before == 1400 and len(part) == 100:
            self.passes += 1
            if self.passes == 2:  # after the sample
                raise InputError("gone: row group 14")
        return super().load(part)


@pytest.mark.parametrize("change", [{"alpha": 0.5}, {"random_state": 1}, {"kernel": Gaussian(2.0)}])
def test_an_error_leaves_a_checkpoint_and_another_fit_does_not_take_it(change, tmp_path):
    model = KernelRidge(Gaussian(1.5), solver="nystrom", n_landmarks=20, checkpoint=tmp_path / "c", alpha=1.0)
    with pytest.raises(InputError, match="gone: row group 14"):
        model.fit(Ending(X, y, rows_at_once=100))
    before = (tmp_path / "c").read_bytes()
    with pytest.raises(CheckpointError, match=r"belongs to another fit \(.*parameters.* differ\)"):
        KernelRidge(**(model.get_params(deep=False) | change)).fit(ArrayRows(X, y, rows_at_once=100))
    with pytest.raises(CheckpointError, match=r"belongs to another fit \(rows.* differ\)"):
        model.fit(ArrayRows(X, -y, rows_at_once=100))
    assert (tmp_path / "c").read_bytes() == before
    model.fit(ArrayRows(X, y, rows_at_once=100))
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("changed", ["X", "y", "sample_weight"])
def test_rows_that_were_summed_and_have_changed_are_not_continued(changed, tmp_path):
    arrays = {"X": X.copy(), "y": y.copy(), "sample_weight": np.ones(1500)}
    model = KernelRidge(Gaussian(1.5), solver="nystrom", landmarks=X[:20], checkpoint=tmp_path / "c", alpha=1.0)
    with pytest.raises(InputError, match="gone: row group 14"):
        model.fit(Ending(**arrays, rows_at_once=100))
    arrays[changed][500] *= 5
    with pytest.raises(CheckpointError, match=r"belongs to another fit \(rows differ\)"):
        model.fit(ArrayRows(**arrays, rows_at_once=100))
    assert (tmp_path / "c").exists()
