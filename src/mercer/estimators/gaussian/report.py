"""The report of a fitted Gaussian process."""

from __future__ import annotations

import numpy as np
import torch

from mercer.core.arrays import Points
from mercer.core.errors import MercerError
from mercer.core.report import Report, make_report
from mercer.data.sample import Sample
from mercer.estimators.common.account import Account, regression_account, rows_account
from mercer.estimators.dials import LESS_LIKELY, MOST_LEFT_OUT, SHOWN_LEVEL, SOME_ROWS
from mercer.estimators.gaussian.fit import ProcessFit
from mercer.estimators.gaussian.learned import at_bounds, irrelevant, is_constant
from mercer.kernels.shown import kernel_text
from mercer.processes import ExactPosterior, Maximum
from mercer.processes.calibration import contradicted, left_out_share
from mercer.processes.dials import JUDGED, MARGIN
from mercer.processes.evidence import noise_alone
from mercer.processes.means import ConstantMean, FunctionMean, LinearMean, ZeroMean
from mercer.selection.left_out import LeftOutPredictions


def process_report(fit: ProcessFit) -> Report:
    """What was learned, how, and what to worry about."""
    seen, optimum, solved = fit.seen, fit.optimum, fit.posterior.report
    size = f"{seen.n_rows:,} row{'s' * (seen.n_rows != 1)}"
    d = fit.posterior.data.n_features
    if d is not None:
        size += f", {d} feature{'s' * (d != 1)}"
    if not seen.one_target:
        size += f", {seen.n_targets} targets"
    lines: list[tuple[str, object]] = [("data", size), ("kernel", kernel_text(fit.posterior.kernel))]
    lines.append(("mean", mean_text(fit)))
    lines.append(("noise", noise_text(fit)))
    lines.append(("evidence", f"log marginal likelihood {fit.likelihood:.6g}"))
    if optimum is not None:
        gain = f"log likelihood {optimum.start_value:.6g} -> {optimum.value:.6g}"
        rows = "" if optimum.n_rows == seen.n_rows else f" of {optimum.n_rows:,} rows"
        lines.append(("learning", f"{gain}{rows}, {optimum.message}, {optimum.evaluations} evaluations"))
    else:
        lines.append(("learning", "none: one row teaches nothing" if _too_few(fit) else "none"))
    lines.append(("method", str(solved)))
    judged = _judged(fit)
    account = _account(fit, judged)
    lines += account.lines
    deviates = np.empty((0, 1)) if judged is None else judged.left_out_deviates()
    if (held := _held(deviates)) is not None:
        lines.append(
            ("intervals", f"those of {SHOWN_LEVEL:.0%} hold {held:.1%} of the rows, each predicted from the others")
        )
    return make_report("Gaussian process regression", lines, [*concerns(fit, deviates), *account.concerns])


def _judged(fit: ProcessFit) -> ExactPosterior | None:
    """The posterior, or one with its kernel and noise given some of the rows, whose rows can be left out."""
    posterior, data = fit.posterior, fit.posterior.data
    if len(data) < 3:
        return None
    try:
        if isinstance(posterior, ExactPosterior) and (len(data) <= MOST_LEFT_OUT or posterior.knows_left_out):
            posterior.leave_one_out()
            return posterior
        some = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[:SOME_ROWS].sort().values
        part, mean = data.take(some.to(data.Y.device)), posterior.mean_function.mean
        return ExactPosterior.condition(posterior.kernel, posterior.noise, part, mean, posterior.place)
    except MercerError:  # memory, or a covariance without noise that cannot be factorised
        return None


def _account(fit: ProcessFit, judged: ExactPosterior | None) -> Account:
    """How good the mean is at rows left out, and what these rows say."""
    if judged is None:
        return Account()
    data, scale = judged.data, fit.plan.target_scale.cpu().double()
    mean = judged.leave_one_out().mean.cpu().double()
    known = mean.isfinite().all(1).nonzero().squeeze(1)
    if len(known) < 3:
        return Account()
    points = data.X if not data.X.is_tensor else Points(data.X.values.detach().cpu(), data.X.names)
    everything = Sample(points, data.Y.cpu().double() * scale, None, fit.seen.one_target, square=data.square)
    sample = everything.take(known)
    n, all_rows = len(data), len(fit.posterior.data)
    how = "leave-one-out" if n == all_rows else f"leave-one-out of a fit to {n:,} of {all_rows:,} rows"
    found = regression_account(sample, LeftOutPredictions.of((mean * scale)[known], sample.targets, None, how))
    told = fit.optimum is not None and fit.optimum.n_copies > 0
    return found.with_concerns(rows_account(sample, fit.posterior.kernel, fit.plan.place, found.skill, copies=not told))


def _too_few(fit: ProcessFit) -> bool:
    return bool(fit.plan.settings.tune) and len(fit.plan.hyper) > 0


def _held(deviates: np.ndarray) -> float | None:
    """The share of rows left out inside intervals of the process, farthest from what they promise of all targets."""
    shares = left_out_share(SHOWN_LEVEL, deviates)
    if not np.isfinite(shares).all():
        return None
    return float(shares[np.argmax(np.abs(shares - SHOWN_LEVEL))])


def mean_text(fit: ProcessFit) -> str:
    """The mean function in words."""
    mean = fit.posterior.mean_function.mean
    if isinstance(mean, ZeroMean):
        return "zero"
    if isinstance(mean, FunctionMean) or (isinstance(mean, ConstantMean) and mean.value is not None):
        return "given"
    coef = fit.posterior.mean_function.coef.cpu() * fit.plan.target_scale
    numbers = ", ".join(f"{v:.4g}" for v in coef[0].tolist())
    words = f"linear, {numbers} at the centre of the data" if isinstance(mean, LinearMean) else f"constant {numbers}"
    return f"{words}; chosen: {fit.mean_reason}" if fit.mean_reason else words


def noise_text(fit: ProcessFit) -> str:
    """The noise in words."""
    if not isinstance(fit.noise, float):
        return f"given for each row, variances from {np.min(fit.noise):.4g} to {np.max(fit.noise):.4g}"
    how = "learned" if fit.plan.hyper.learn_noise and fit.optimum is not None else "given"
    if fit.plan.hyper.learn_noise and fit.optimum is None:
        how = "the start value"
    scaled = "" if fit.seen.one_target else ", for targets divided by target_scale_"
    return f"variance {fit.noise:.4g}, standard deviation {fit.noise**0.5:.4g} ({how}{scaled})"


def concerns(fit: ProcessFit, deviates: np.ndarray) -> list[str]:
    """What is worth a look; `deviates` are standardised errors at rows left out."""
    found: list[str] = []
    posterior, optimum, solved = fit.posterior, fit.optimum, fit.posterior.report
    if not solved.converged:
        found.append(
            f"the model does not fit the training data (relative residual {solved.residual:.1e}): use a larger noise"
        )
    if solved.jitter:
        found.append(f"a jitter of {solved.jitter:.0e} was added to the diagonal to make the factorisation succeed")
    if posterior.clamped:
        found.append(f"{posterior.clamped:,} variances were below zero by rounding and set to zero")
    if is_constant(fit):
        found.append("the targets are constant: there is nothing to learn but that")
    if not isinstance(fit.noise, float):
        found.append("new observations are given the mean of the variances of the rows")
    found += _wrong_intervals(deviates)
    if optimum is None:
        return found
    if not optimum.converged:
        found.append(f"learning stopped at its limit of {fit.plan.settings.max_iter} iterations: raise max_iter")
    found += _repeated(fit, optimum)
    found += _unlike_the_rest(fit, optimum)
    found += irrelevant(fit)
    found += at_bounds(fit, optimum.theta)
    if _looks_like_noise(fit):
        if isinstance(posterior.mean_function.mean, LinearMean):
            found.append("the data look like a line and noise, which explain them about as well without any function")
        else:
            found.append("the data look like noise: without any function, noise alone explains them about as well")
    return found


def _wrong_intervals(deviates: np.ndarray) -> list[str]:
    for level in np.asarray(JUDGED)[contradicted(deviates).any(1)]:
        shares = left_out_share(level, deviates)
        held = float(shares[np.argmax(np.abs(shares - level))])
        kind = "wide" if held > level else "narrow"
        return [
            f"intervals of the process are too {kind} (those of {level:.0%} hold {held:.1%} of the rows left out): "
            "predict_interval takes their width from these rows"
        ]
    return []


def _looks_like_noise(fit: ProcessFit) -> bool:
    posterior = fit.posterior
    if posterior.data.noise is not None or len(posterior.data) < 3 or is_constant(fit):
        return False
    return _likelihood(fit) < noise_alone(posterior.data, posterior.mean_function.mean) + MARGIN


def _likelihood(fit: ProcessFit) -> float:
    """The log marginal likelihood of all rows in the units that were learned in."""
    return fit.likelihood + len(fit.posterior.data) * float(fit.plan.target_scale.log().sum())


def _repeated(fit: ProcessFit, optimum: Maximum) -> list[str]:
    if not optimum.n_copies:
        return []
    one = optimum.n_copies == 1
    rows = f"{optimum.n_copies:,} row{' repeats another' if one else 's repeat others'} in X and y"
    why = ", since copies make the noise look small" if fit.plan.hyper.learn_noise else ""
    return [
        f"{rows} and {'was' if one else 'were'} not learned from{why}; predictions count copies like other rows, so "
        "that deviations and leave-one-out errors near them come out too small: remove them if they are one record"
    ]


def _unlike_the_rest(fit: ProcessFit, optimum: Maximum) -> list[str]:
    """Rows that were learned from and explain the others badly: more rows are more, not less, likely each."""
    if fit.plan.settings.n_learn is None:
        return []
    n, taught = len(fit.posterior.data), optimum.n_rows
    some, all_rows = optimum.value / taught, _likelihood(fit) / n
    if some - all_rows < LESS_LIKELY:
        return []
    words = f"log likelihood a row of {all_rows:.3g} for all, {some:.3g} for those"
    return [f"the {taught:,} rows that were learned from are unlike the others ({words}): raise n_learn"]
