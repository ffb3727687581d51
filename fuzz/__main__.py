"""``python -m fuzz fits --count 5000 --seed 0`` and ``python -m fuzz files --count 30000``; see ``--help``."""

from __future__ import annotations

import argparse
import sys

from fuzz import calls, files, fits
from fuzz.trial import run

GENERATORS = {"fits": fits.trials, "files": files.trials, "calls": calls.trials}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("what", choices=GENERATORS, help="random fits, model files or calls")
    parser.add_argument("--count", type=int, default=1000, help="how many trials")
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds of processor time that a trial may take")
    parser.add_argument("--refusals", action="store_true", help="print errors of mercer and of scikit-learn too")
    chosen = parser.parse_args()
    numbers = range(chosen.first, chosen.first + chosen.count)
    return run(chosen.what, GENERATORS[chosen.what](chosen.seed, numbers), chosen.seed, chosen.limit, chosen.refusals)


if __name__ == "__main__":
    sys.exit(main())
