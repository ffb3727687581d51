"""What is loaded, and when."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mercer


def loaded(code: str) -> set[str]:
    """The modules that a new Python has loaded after this code."""
    out = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(out.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("code", ["import mercer; dir(mercer)", "from mercer.cli import app"])
def test_the_package_and_the_help_of_its_commands_need_no_torch(code: str) -> None:
    assert not {"torch", "sklearn", "numpy"} & loaded(code)


def test_every_public_name_is_there() -> None:
    assert set(dir(mercer)) == set(mercer.__all__)
    for name in mercer.__all__:
        assert getattr(mercer, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'KernelRige'"):
        mercer.KernelRige  # noqa: B018


def test_what_the_packages_of_estimators_list_is_public() -> None:
    from mercer import estimators

    assert set(estimators.__all__) <= set(mercer.__all__)
    assert all(getattr(mercer, name) is getattr(estimators, name) for name in estimators.__all__)


def test_loading_knows_every_estimator_in_a_new_process(tmp_path) -> None:
    path = tmp_path / "model.safetensors"
    mercer.KernelPCA(1, kernel="gaussian").fit([[0.0], [1.0], [3.0]]).save(path)
    done = subprocess.run(
        [sys.executable, "-c", f"import mercer; print(type(mercer.load({str(path)!r})).__name__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "KernelPCA"
