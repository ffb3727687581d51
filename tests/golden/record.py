"""Record the golden file: ``python tests/golden/record.py``.

The file holds what the code gave before a change of its structure. Record again only when a change of numbers is
intended, and say in the commit which numbers changed and why; a change of structure leaves the file as it is. A case
that was added is recorded alone with ``python tests/golden/record.py NAME ...``.
"""

from __future__ import annotations

import gzip
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from golden_cases import CASES

GOLDEN = Path(__file__).with_name("golden.json.gz")


def plain(value: Any) -> Any:
    """Numbers as lists of floats with 12 digits, names as they are."""
    if isinstance(value, str) or (isinstance(value, list) and isinstance(value[0], str)):
        return value
    values = np.asarray(value.detach() if isinstance(value, torch.Tensor) else value, dtype=np.float64)
    return np.vectorize(lambda x: float(f"{x:.12g}"))(values).tolist()


def run(name: str) -> dict[str, Any]:
    """What a case gives now; warnings are no part of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {key: plain(value) for key, value in CASES[name].numbers().items()}


def read() -> dict[str, dict[str, Any]]:
    """The recorded numbers by case."""
    return json.loads(gzip.decompress(GOLDEN.read_bytes())) if GOLDEN.exists() else {}


def main(names: list[str]) -> None:
    kept = {name: numbers for name, numbers in read().items() if names and name in CASES}
    kept |= {name: run(name) for name in names or CASES}
    text = json.dumps({name: kept[name] for name in sorted(kept)}, separators=(",", ":"))
    GOLDEN.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(kept)} cases in {GOLDEN}")


if __name__ == "__main__":
    main(sys.argv[1:])
