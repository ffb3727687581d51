"""What the allocator is told."""

import pytest

from mercer.core import memory


@pytest.mark.parametrize(("setting", "called"), [("65536", [-3, -1]), ("1000000", []), (None, [])])
def test_a_worker_keeps_its_buffers_unless_a_user_has_decided(setting, called, monkeypatch):
    """Only Dask's default is changed."""
    told = []

    class Library:
        @staticmethod
        def mallopt(name, value):
            told.append(name)

    monkeypatch.setattr(memory, "_c_library", lambda: Library)
    if setting is None:
        monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    else:
        monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", setting)
    memory.keep_buffers.__wrapped__()
    assert told == called
