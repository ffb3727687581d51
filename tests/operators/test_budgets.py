"""Memory budgets and devices are read from what people write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from mercer.core import memory
from mercer.core.devices import choose_device, choose_dtype
from mercer.core.errors import InputError, InputTypeError, MemoryBudgetError
from mercer.core.memory import free_memory, parse_budget, readable, require, resolve_budget


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("2KiB", 2048),
        ("2 kb", 2000),
        ("1.5 GiB", 3 * 2**29),
        (".5MB", 500_000),
        (" 3 TiB ", 3 * 2**40),
        ("4G", 4 * 2**30),
        (1e9, 10**9),
        (np.int64(7), 7),
    ],
)
def test_budgets_are_read(text: object, size: int) -> None:
    assert parse_budget(text) == size


@pytest.mark.parametrize("value", ["", "GiB", "1 XB", "1e", "-3MB", 0, -5, float("inf"), float("nan"), 0.2])
def test_budgets_that_are_no_size_are_errors(value: object) -> None:
    with pytest.raises(InputError, match="memory_budget="):
        parse_budget(value)


@pytest.mark.parametrize("value", [True, [1], b"1GB", 1j])
def test_budgets_of_another_type_are_errors(value: object) -> None:
    with pytest.raises(InputTypeError, match="memory_budget="):
        parse_budget(value)


@pytest.fixture
def read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question is answered by the system; what was remembered is put back after the test."""
    monkeypatch.setattr(memory, "FRESH", -1.0)
    monkeypatch.setattr(memory, "_read_at", memory._read_at)
    monkeypatch.setattr(memory, "_found_free", memory._found_free)


@pytest.mark.usefixtures("read_anew")
def test_the_default_budget_is_half_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_system_free", lambda: 1000)
    monkeypatch.setattr(memory, "_container_free", lambda: 600)
    assert free_memory() == 600
    assert resolve_budget() == 300
    assert resolve_budget("1KB") == 1000


def test_the_limit_of_a_container_counts_and_its_cache_does_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    unlimited = memory._container_free()
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 300\n")
    assert memory._container_free() == 400
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._container_free() == unlimited > 2**60


@pytest.mark.usefixtures("read_anew")
def test_free_memory_without_proc_is_a_share_of_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(path: Path) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", missing)
    assert free_memory() > 0
    monkeypatch.setattr(memory.os, "sysconf", missing)
    assert free_memory() == memory.UNKNOWN_FREE


def test_what_does_not_fit_says_what_it_needs() -> None:
    with pytest.raises(MemoryBudgetError, match=r"K needs 2\.0 KiB but the memory budget is 1\.0 KiB\. Try less\."):
        require(2048, 1024, "K", "Try less.")
    require(1024, 1024, "K")
    assert readable(5 * 2**40) == "5.0 TiB"


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_devices_are_chosen_from_what_there_is() -> None:
    assert choose_device("auto") == choose_device(None) == choose_device(torch.device("cpu")) == torch.device("cpu")
    assert choose_device("auto", torch.ones(1)) == torch.device("cpu")
    with pytest.raises(InputError, match="no CUDA device"):
        choose_device("cuda")


@pytest.mark.parametrize("device", ["gpu", "", "mps", "meta"])
def test_devices_that_do_not_exist_are_errors(device: str) -> None:
    with pytest.raises(InputError, match="device="):
        choose_device(device)
    with pytest.raises(InputTypeError, match="device="):
        choose_device(3)


@pytest.mark.parametrize("dtype", ["float32", torch.float32, np.float32, np.dtype("float32")])
def test_dtypes_are_read(dtype: object) -> None:
    assert choose_dtype(dtype) == torch.float32


def test_the_automatic_dtype_is_that_of_the_data() -> None:
    assert choose_dtype("auto", np.ones(2, dtype=np.float32)) == torch.float32
    assert choose_dtype("auto", torch.ones(2)) == torch.float32
    assert choose_dtype("auto", np.ones(2, dtype=int)) == choose_dtype() == torch.float64


@pytest.mark.parametrize("dtype", ["float16", torch.bfloat16, int, 32, "double"])
def test_dtypes_that_are_not_offered_are_errors(dtype: object) -> None:
    with pytest.raises(InputTypeError if dtype == 32 else InputError, match="dtype="):
        choose_dtype(dtype)
