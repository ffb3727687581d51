"""The report of a recursive feature machine."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch

from mercer.core.arrays import Points
from mercer.core.report import Report, make_report
from mercer.data.sample import Sample
from mercer.estimators.common.account import Account, classification_account, regression_account, table_concerns
from mercer.estimators.dials import CLEAR_GAIN, SHOWN
from mercer.estimators.rfm.fit import RFMFit, codes_of
from mercer.estimators.rfm.search import Choice
from mercer.selection.left_out import LeftOutPredictions

HOW = {"cross-fitted": "cross-fitting", "held out": "rows held out"}


def column_names(names: Iterable[str] | None, count: int) -> list[str]:
    """The names of columns, or x0, x1, ..."""
    return [f"x{j}" for j in range(count)] if names is None else list(names)


def machine_report(fit: RFMFit, names: list[str]) -> Report:
    """What was fitted, how it was chosen, and what to worry about."""
    seen, choice = fit.seen, fit.choice
    lines: list[tuple[str, object]] = [
        ("data", f"{seen.n_rows:,} rows, {len(names)} feature{'s' * (len(names) != 1)}"),
        ("kernel", choice.machine.kernel.rounded()),
        ("features", _features(choice)),
        ("alpha", f"{choice.ridge:.4g}"),
        ("columns", _columns(fit, names)),
        ("error", _error(fit)),
        ("solver", fit.machine.solver_report_),
    ]
    if fit.paths:
        lines.insert(5, ("gain", _gain(fit)))
    account = account_of(fit, names)
    lines[-1:-1] = [line for line in account.lines if line[0] not in ("error", "accuracy")]
    return make_report("Recursive feature machine", lines, [*_concerns(fit), *account.concerns])


def account_of(fit: RFMFit, names: list[str]) -> Account:
    """How good the machine is at rows whose labels it did not see, and what these rows say."""
    out = fit.out
    if out is None:
        return fit.told or Account()
    rows = Points(out.rows.values.detach().cpu().to(torch.float64), tuple(names))
    targets = out.targets if fit.classes is None else codes_of(out.targets).unsqueeze(1).double()
    sample = Sample(rows, targets.cpu(), out.weights, fit.seen.one_target)
    if fit.classes is None or fit.calibration is None:
        found = regression_account(
            sample, LeftOutPredictions.of(out.predicted, out.targets, out.weights, HOW[fit.judged])
        )
    else:
        found = classification_account(sample, fit.classes, fit.calibration(out.predicted.cpu()), HOW[fit.judged])
    return found.with_concerns(table_concerns(sample, labels=fit.classes is not None))


def _columns(fit: RFMFit, names: list[str]) -> str:
    shares = fit.importances.cpu().numpy()
    order = np.argsort(-shares)[:SHOWN]
    return ", ".join(f"{names[j]} {shares[j]:.0%}" for j in order) + ", ..." * (len(names) > SHOWN)


def _features(choice: Choice) -> str:
    if choice.n_rounds == 0:
        return "all columns alike"
    rounds = f"{choice.n_rounds} round{'s' * (choice.n_rounds != 1)}"
    return f"{'diagonal' if choice.machine.diagonal else 'full'} M after {rounds}"


def _error(fit: RFMFit) -> str:
    if fit.judged not in HOW:
        return "not known: too few rows"
    if fit.classes is not None:
        return f"{fit.accuracy:.1%} right ({fit.judged})"
    return ", ".join(f"{value:.4g}" for value in fit.error.tolist()) + f" root mean square ({fit.judged})"


def _gain(fit: RFMFit) -> str:
    first = min(errors[0] for _, errors in fit.paths)
    return f"relative squared error {first:.4g} with all columns alike -> {fit.choice.error:.4g}"


def _concerns(fit: RFMFit) -> list[str]:
    found = []
    if not fit.paths:
        found.append("there were too few rows to learn features: all columns count alike")
    elif fit.choice.error > CLEAR_GAIN * min(errors[0] for _, errors in fit.paths):
        found.append("learning features hardly helped: KernelRidge is simpler and about as good")
    if not fit.machine.solver_report_.converged:
        found.append("the final system was not solved to its tolerance: use a larger alpha")
    return found
