"""Run one trial after the other, judge how each ended, count and print."""

from __future__ import annotations

import contextlib
import io
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from mercer.core.errors import MercerError

FINDING = "finding"
CHECKS = ("sklearn/utils/validation.py", "sklearn/utils/multiclass.py")
OWN_WARNINGS = (ConvergenceWarning, DataConversionWarning)
MANY_CLASSES = "The number of unique classes is greater"
"""Of scikit-learn's warning about labels that look like numbers."""
OF_TORCH = "`torch.jit.script"
"""Of what some versions of torch say of themselves when they first differentiate forwards."""


class Finding(Exception):
    """Something that must not happen: a wrong number, NaN without a word, a broken promise."""


class TooSlow(BaseException):
    """The time limit of a trial; no handler of ordinary errors stops it."""


@dataclass(frozen=True)
class Trial:
    """What is tried, in words, and how. The check gives its outcome in a word, or raises a `Finding`."""

    number: int
    words: str
    check: Callable[[], str]


def run(what: str, trials: Iterable[Trial], seed: int, limit: float, refusals: bool = False) -> int:
    """Run all trials, print the findings, the refusals if asked for, and the counts; 1 where there are findings."""
    outcomes: Counter[str] = Counter()
    slowest = (0.0, -1)
    for trial in trials:
        started = time.process_time()
        outcome, text = judged(trial, limit)
        slowest = max(slowest, (time.process_time() - started, trial.number))
        outcomes[outcome] += 1
        if text and (refusals or outcome.startswith(FINDING)):
            again = f"python -m fuzz {what} --seed {seed} --first {trial.number} --count 1"
            print(f"{outcome.upper()}: {text}\n  {trial.words}\n  {again}", flush=True)
    for outcome, count in outcomes.most_common():
        print(f"{count:7,}  {outcome}")
    print(f"slowest: {slowest[0]:.1f} s, number {slowest[1]}")
    return int(any(outcome.startswith(FINDING) for outcome in outcomes))


def judged(trial: Trial, limit: float) -> tuple[str, str]:
    """The outcome in a word, and what was said where it is an error."""
    with warnings.catch_warnings(record=True) as said, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        try:
            with within(limit):
                outcome, text = trial.check(), ""
        except MercerError as error:
            outcome, text = f"own error: {type(error).__name__}", str(error)[:300]
        except Finding as finding:
            return f"{FINDING}: wrong", str(finding)
        except TooSlow:
            return f"{FINDING}: too slow", f"more than {limit:g} s, at {_place()}"
        except Exception as error:
            if _of_scikit_learn(error):
                return f"scikit-learn's error: {type(error).__name__}", str(error)[:300]
            return f"{FINDING}: foreign error", f"{type(error).__name__}: {str(error)[:160]!r} at {_where(error)}"
    foreign = [
        w
        for w in said
        if not (
            issubclass(w.category, OWN_WARNINGS) or any(words in str(w.message) for words in (MANY_CLASSES, OF_TORCH))
        )
    ]
    if foreign:
        first = foreign[0]
        text = f"{first.category.__name__}: {str(first.message)[:120]} at {first.filename[-60:]}:{first.lineno}"
        return f"{FINDING}: foreign warning", text
    return outcome, text


@contextlib.contextmanager
def within(limit: float) -> Iterator[None]:
    """Raise `TooSlow` after so many seconds of processor time."""

    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def _where(error: BaseException) -> str:
    """The last line of mercer's code that an error passed, and the line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/mercer/" in frame.filename]
    last = own[-1] if own else frames[-1]
    return f"{last.filename.split('/mercer/')[-1]}:{last.lineno} in {last.name}"


def _of_scikit_learn(error: BaseException) -> bool:
    """Whether scikit-learn's checks of input refused it, in words that its users know."""
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    return isinstance(error, ValueError | TypeError) and last.endswith(CHECKS)


def _place() -> str:
    error = sys.exc_info()[1]
    return _where(error) if error is not None else "an unknown place"
