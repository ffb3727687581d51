"""Progress: a bar on terminals, sparse lines elsewhere, speed and time left."""

from __future__ import annotations

import io

import pytest

from mercer.core.progress import Iterations, Progress, counted


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def run(stream, steps, seconds=1.0, rows=100, done=0, **options):
    clock = Clock()
    with Progress(steps * rows + done, "pass 1", done=done, stream=stream, clock=clock, **options) as progress:
        for _ in range(steps):
            clock.now += seconds
            progress.advance(rows)
    return stream.getvalue()


def test_a_terminal_shows_one_line_that_is_written_over(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = run(Terminal(), 4)
    assert text.count("\n") == 1
    assert text.count("\r") == 4
    assert "50%, 200 of 400 rows, 100 rows/s, 2 s left" in text
    assert text.rstrip("\n").rstrip(" ").endswith("pass 1: 400 rows in 4 s, 100 rows/s")


def test_a_line_never_wraps_in_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    assert max(map(len, run(Terminal(), 4).replace("\n", "").split("\r"))) < 30


def test_elsewhere_there_is_a_line_every_ten_seconds():
    lines = run(io.StringIO(), 100).splitlines()
    assert 9 <= len(lines) <= 11
    assert lines[0] == "pass 1: 10%, 1,000 of 10,000 rows, 100 rows/s, 1 min 30 s left"
    assert lines[-1] == "pass 1: 10,000 rows in 1 min 40 s, 100 rows/s"


def test_the_speed_counts_only_what_was_done_here():
    lines = run(io.StringIO(), 20, done=2000).splitlines()
    assert lines[0] == "pass 1: 75%, 3,000 of 4,000 rows, 100 rows/s, 10 s left"


def test_what_is_not_shown_writes_nothing_and_an_error_passes_through(capsys):
    with pytest.raises(ZeroDivisionError), Progress(10, "x", shown=False) as progress:
        progress.advance(5 // 0)
    assert list(counted(["ab"], 2, "letters", shown=False)) == ["ab"]
    assert capsys.readouterr() == ("", "")


def test_iterations_tell_when_they_will_reach_the_tolerance():
    stream, clock = io.StringIO(), Clock()
    tell = Iterations(1e-6, 5, stream=stream, clock=clock)
    for i in range(1, 5):
        clock.now += 2.0
        tell(i, 10.0**-i)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "iteration 1: relative residual 1.00e-01"
    assert lines[1].endswith("2.00 s each, about 6 s left")  # max_iter, before the tolerance
    assert lines[3].endswith("2.00 s each, about 2 s left")
