"""Run the benchmarks named on the command line, or all: ``python -m benchmarks [gram_product ...]``."""

from __future__ import annotations

import sys
from importlib import import_module

from benchmarks import Row
from benchmarks.processor import processor

MODULES = ("gram_product", "kernel_ridge", "features", "small_data", "gaussian_process", "classification")

ON_REQUEST = ("cpu_scale", "out_of_core", "cluster")
"""Run only when named: they need more than some minutes."""


def table(rows: list[Row]) -> str:
    """The rows as aligned text."""
    lines = [("benchmark", "peer", "ours", "peer's", "ratio", "asked", "", "")]
    for row in rows:
        numbers = (f"{row.ours:,.4g} {row.unit}", f"{row.theirs:,.4g} {row.unit}", f"{row.ratio:.2g}x")
        target = "" if row.target is None else f"{row.target:.2g}x"
        lines.append((row.name, row.peer, *numbers, target, "" if row.met else "MISSED", row.note))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    left = (0, 1, 6, 7)
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i in left else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def main(names: list[str]) -> int:
    known = (*MODULES, *ON_REQUEST)
    unknown = sorted(set(names) - set(known))
    if unknown:
        print(f"unknown benchmarks: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    print(processor(), flush=True)
    rows: list[Row] = []
    for name in names or MODULES:
        print(f"running {name} ...", file=sys.stderr, flush=True)
        for row in import_module(f"benchmarks.{name}").run():
            print(f"  {row.name}: {row.ratio:.2f}", file=sys.stderr, flush=True)
            rows.append(row)
    print(table(rows))
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
