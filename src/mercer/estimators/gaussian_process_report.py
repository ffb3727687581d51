"""The report of a fitted Gaussian process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mercer.core.report import Report, make_report
from mercer.kernels import Kernel
from mercer.processes import ExactPosterior, Maximum
from mercer.processes.calibration import JUDGED, contradicted, left_out_share
from mercer.processes.evidence import noise_alone
from mercer.processes.maximise import MARGIN
from mercer.processes.means import ConstantMean, FunctionMean, LinearMean, ZeroMean

if TYPE_CHECKING:
    from mercer.estimators.gaussian_process import GaussianProcessRegressor

IRRELEVANT = 1e-2
"""A feature whose deviation / length scale is below this share of the largest one hardly matters."""
LESS_LIKELY = 0.5
"""By so much the log likelihood of a row is lower on average than where it was learned before that is a concern."""
MANY = 6
"""More numbers than this are shown by their range."""
SHOWN = 0.95
"""The level of the intervals that are spoken of."""


def process_report(model: GaussianProcessRegressor) -> Report:
    """What was learned, how, and what to worry about."""
    seen, optimum, solved = model._seen, model.optimum_, model._posterior.report
    size = f"{seen.n_rows:,} row{'s' * (seen.n_rows != 1)}"
    d = None if model._posterior.data.square else getattr(model, "n_features_in_", None)
    if d is not None:
        size += f", {d} feature{'s' * (d != 1)}"
    if not seen.one_target:
        size += f", {seen.n_targets} targets"
    lines: list[tuple[str, object]] = [("data", size), ("kernel", kernel_text(model.kernel_))]
    lines.append(("mean", mean_text(model)))
    lines.append(("noise", noise_text(model)))
    lines.append(("evidence", f"log marginal likelihood {model.log_marginal_likelihood_:.6g}"))
    if optimum is not None:
        gain = f"log likelihood {optimum.start_value:.6g} -> {optimum.value:.6g}"
        rows = "" if optimum.n_rows == seen.n_rows else f" of {optimum.n_rows:,} rows"
        lines.append(("learning", f"{gain}{rows}, {optimum.message}, {optimum.evaluations} evaluations"))
    else:
        lines.append(("learning", "none: one row teaches nothing" if _too_few(model) else "none"))
    lines.append(("method", str(solved)))
    if (held := _held(model)) is not None:
        lines.append(("intervals", f"those of {SHOWN:.0%} hold {held:.1%} of the rows, each predicted from the others"))
    return make_report("Gaussian process regression", lines, concerns(model))


def _too_few(model: GaussianProcessRegressor) -> bool:
    return model.optimize and len(model._hyperparameters) > 0


def _held(model: GaussianProcessRegressor) -> float | None:
    """The share of the rows left out inside intervals of the process, farthest from what they promise of all targets.

    None where nobody asked for it yet: it costs as much as an evaluation of the likelihood.
    """
    posterior = model._posterior
    if not (isinstance(posterior, ExactPosterior) and posterior.knows_left_out):
        return None
    shares = left_out_share(SHOWN, posterior.left_out_deviates())
    if not np.isfinite(shares).all():
        return None
    return float(shares[np.argmax(np.abs(shares - SHOWN))])


def kernel_text(kernel: Kernel) -> str:
    """The kernel with numbers cut to four digits, and long lists of length scales as their range."""
    shown = repr(kernel.rounded())
    for value in kernel.rounded().tunable().values():
        if isinstance(value, tuple) and len(value) > MANY:
            shown = shown.replace(repr(value), f"<{len(value)} from {min(value):g} to {max(value):g}>")
    return shown


def mean_text(model: GaussianProcessRegressor) -> str:
    """The mean function in words."""
    mean = model._posterior.mean_function.mean
    if isinstance(mean, ZeroMean):
        return "zero"
    if isinstance(mean, FunctionMean) or (isinstance(mean, ConstantMean) and mean.value is not None):
        return "given"
    coef = model._posterior.mean_function.coef.cpu() * model._target_scale
    numbers = ", ".join(f"{v:.4g}" for v in coef[0].tolist())
    words = f"linear, {numbers} at the centre of the data" if isinstance(mean, LinearMean) else f"constant {numbers}"
    return f"{words}; chosen: {model._mean_reason}" if model._mean_reason else words


def noise_text(model: GaussianProcessRegressor) -> str:
    """The noise in words."""
    if not isinstance(model.noise_, float):
        return f"given for each row, variances from {np.min(model.noise_):.4g} to {np.max(model.noise_):.4g}"
    how = "learned" if model._hyperparameters.learn_noise and model.optimum_ is not None else "given"
    if model._hyperparameters.learn_noise and model.optimum_ is None:
        how = "the start value"
    scaled = "" if model._seen.one_target else ", for targets divided by target_scale_"
    return f"variance {model.noise_:.4g}, standard deviation {model.noise_**0.5:.4g} ({how}{scaled})"


def relevances(model: GaussianProcessRegressor) -> np.ndarray | None:
    """Deviation / length scale of each feature: the largest over length scales of the kernel; None without any."""
    spread = model._scales.X
    if spread is None:
        return None
    found = [v for path, v in model.kernel_.tunable().items() if path.endswith("length_scale") and np.ndim(v) == 1]
    fitting = [spread / np.asarray(v) for v in found if len(v) == len(spread)]
    return np.max(fitting, axis=0) if fitting else None


def feature_names(model: GaussianProcessRegressor) -> list[str]:
    """The names of the features, or their numbers."""
    names = getattr(model, "feature_names_in_", None)
    return [f"feature {i}" for i in range(model.n_features_in_)] if names is None else [str(name) for name in names]


def concerns(model: GaussianProcessRegressor) -> list[str]:
    """What is worth a look."""
    found: list[str] = []
    posterior, optimum, solved = model._posterior, model.optimum_, model._posterior.report
    if not solved.converged:
        found.append(f"the data are not met (relative residual {solved.residual:.1e}): use a larger noise")
    if solved.jitter:
        found.append(f"a jitter of {solved.jitter:.0e} was added to the diagonal to make the factorisation succeed")
    if posterior.clamped:
        found.append(f"{posterior.clamped:,} variances were below zero by rounding and set to zero")
    if _constant(model):
        found.append("the targets are constant: there is nothing to learn but that")
    if not isinstance(model.noise_, float):
        found.append("new observations are given the mean of the variances of the rows")
    found += _wrong_intervals(model)
    if optimum is None:
        return found
    if not optimum.converged:
        found.append(f"learning stopped at its limit of {model.max_iter} iterations: raise max_iter")
    found += _repeated(model, optimum)
    found += _unlike_the_rest(model, optimum)
    found += _irrelevant(model)
    found += _at_bounds(model, optimum.theta)
    if _looks_like_noise(model):
        if isinstance(posterior.mean_function.mean, LinearMean):
            found.append("the data look like a line and noise, which explain them about as well without any function")
        else:
            found.append("the data look like noise: without any function, noise alone explains them about as well")
    return found


def _wrong_intervals(model: GaussianProcessRegressor) -> list[str]:
    posterior = model._posterior
    if not (isinstance(posterior, ExactPosterior) and posterior.knows_left_out):
        return []
    deviates = posterior.left_out_deviates()
    for level in np.asarray(JUDGED)[contradicted(deviates).any(1)]:
        shares = left_out_share(level, deviates)
        held = float(shares[np.argmax(np.abs(shares - level))])
        kind = "wide" if held > level else "narrow"
        return [
            f"intervals of the process are too {kind} (those of {level:.0%} hold {held:.1%} of the rows left out): "
            "predict_interval takes their width from these rows"
        ]
    return []


def _looks_like_noise(model: GaussianProcessRegressor) -> bool:
    posterior = model._posterior
    if posterior.data.noise is not None or len(posterior.data) < 3 or _constant(model):
        return False
    return _likelihood(model) < noise_alone(posterior.data, posterior.mean_function.mean) + MARGIN


def _likelihood(model: GaussianProcessRegressor) -> float:
    """The log marginal likelihood of all rows in the units that were learned in."""
    return model.log_marginal_likelihood_ + len(model._posterior.data) * float(model._target_scale.log().sum())


def _constant(model: GaussianProcessRegressor) -> bool:
    Y = model._posterior.data.Y
    return len(Y) > 1 and bool((Y[:1] == Y).all())


def _repeated(model: GaussianProcessRegressor, optimum: Maximum) -> list[str]:
    if not optimum.n_copies:
        return []
    one = optimum.n_copies == 1
    rows = f"{optimum.n_copies:,} row{' repeats another' if one else 's repeat others'} in X and y"
    why = ", since copies make the noise look small" if model._hyperparameters.learn_noise else ""
    return [
        f"{rows} and {'was' if one else 'were'} not learned from{why}; predictions count copies like other rows, so "
        "that deviations and leave-one-out errors near them come out too small: remove them if they are one record"
    ]


def _unlike_the_rest(model: GaussianProcessRegressor, optimum: Maximum) -> list[str]:
    """Rows that were learned from and explain the others badly: more rows are more, not less, likely each."""
    if model.n_learn is None:
        return []
    n, taught = len(model._posterior.data), optimum.n_rows
    some, all_rows = optimum.value / taught, _likelihood(model) / n
    if some - all_rows < LESS_LIKELY:
        return []
    words = f"log likelihood a row of {all_rows:.3g} for all, {some:.3g} for those"
    return [f"the {taught:,} rows that were learned from are unlike the others ({words}): raise n_learn"]


def _irrelevant(model: GaussianProcessRegressor) -> list[str]:
    relevance = relevances(model)
    if relevance is None or len(relevance) < 2 or model._hyperparameters.tied:
        return []
    names = feature_names(model)
    weak = [names[i] for i in np.flatnonzero(relevance < IRRELEVANT * relevance.max())]
    if not weak:
        return []
    if len(weak) > MANY:
        return [f"{len(weak)} features look irrelevant, such as {', '.join(weak[:3])}: very long length scales"]
    verb = "looks" if len(weak) == 1 else "look"
    return [f"{', '.join(weak)} {verb} irrelevant: very long length scale{'s' * (len(weak) != 1)}"]


def _at_bounds(model: GaussianProcessRegressor, theta: np.ndarray) -> list[str]:
    """Parameters at an end of their range, other than length scales that are named as irrelevant features."""
    lines = []
    for label, end in model._hyperparameters.at_bounds(theta).items():
        if "length_scale" in label and end == "upper" and relevances(model) is not None:
            continue
        if label == "noise" and end == "lower" and _constant(model):
            continue
        if label == "noise" and end == "lower":
            lines.append("the noise is at its lower bound: the data look free of noise")
        else:
            lines.append(f"{label} is at its {end} bound")
    return lines[:MANY] + ([f"{len(lines) - MANY} more parameters are at a bound"] if len(lines) > MANY else [])
