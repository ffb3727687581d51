"""The report of an estimator on a table: what became of each column comes first."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mercer.core.report import Report
from mercer.estimators.dials import MOST
from mercer.estimators.tabular.encoder import TableEncoder


def tabular_report(encoder: TableEncoder, inner: Any) -> Report:
    """The columns, then what the estimator itself reports."""
    own: Report = inner.report() if hasattr(inner, "report") else Report(type(inner).__name__, ())
    kinds = Counter(treatment.kind for treatment in encoder.treatments)
    plural = {"number": "numbers", "category": "categories", "date": "dates", "left out": "left out"}
    words = ", ".join(f"{count} {kind if count == 1 else plural[kind]}" for kind, count in kinds.items())
    lines = [("table", f"{len(encoder.treatments)} columns: {words}; encoded as {len(encoder.columns)}")]
    lines += [(f"  {t.name}", t.words) for t in encoder.treatments[:MOST]]
    if len(encoder.treatments) > MOST:
        lines.append(("  ...", f"{len(encoder.treatments) - MOST} more"))
    concerns = [
        f"column {t.name!r} is left out: {t.why}; keep it with columns={{{t.name!r}: 'category'}} or 'number'"
        for t in encoder.left_out
        if "different" in t.why
    ]
    return Report(f"{own.title}, on a table", (*lines, *own.lines), (*own.concerns, *concerns))
