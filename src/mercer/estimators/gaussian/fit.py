"""A fitted Gaussian process: the posterior, and how its kernel and noise were found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.data.given import Noise
from mercer.data.sample import Sample, Seen
from mercer.estimators.gaussian.noise import row_variances
from mercer.estimators.gaussian.plan import ProcessPlan, observations, other_starts
from mercer.processes import ExactPosterior, LeaveOneOut, Maximum, Observations, Posterior
from mercer.processes.choose_kernel import choose_kernel
from mercer.processes.choose_mean import choose_mean
from mercer.processes.components import Component, terms_of
from mercer.processes.means import ConstantMean, Mean
from mercer.processes.slopes import slope
from mercer.processes.sparse_posterior import SparsePosterior
from mercer.processes.sparse_rows import sums_of, with_sums
from mercer.processes.stages import learn


@dataclass(frozen=True, eq=False)
class ProcessFit:
    """What a fit knows. Its methods give values in the units of the targets.

    Attributes
    ----------
    plan : ProcessPlan
        What was done.
    seen : Seen
        What is remembered of the rows.
    posterior : Posterior
        The process given the data, whose targets are divided by the plan's `target_scale`.
    likelihood : float
        The log marginal likelihood.
    optimum : Maximum or None
        The account of the learning, None where there was none.
    mean_reason : str
        Why the mean function is what it is, where the data decided.
    order : Tensor or None
        Ranks of the rows in time, where they were given.
    forecast_deviates : array or None
        Errors of forecasts of later rows in units of their deviations, once they were asked for.
    """

    plan: ProcessPlan
    seen: Seen
    posterior: Posterior
    likelihood: float
    optimum: Maximum | None
    mean_reason: str
    order: Tensor | None = None
    forecast_deviates: np.ndarray | None = None

    @property
    def noise(self) -> Any:
        """The variance of the noise as users see it: a number, or an array of one for each row."""
        posterior = self.posterior
        return posterior.noise if posterior.data.noise is None else posterior.data.noise.cpu().numpy() + posterior.noise

    @property
    def new_noise(self) -> float:
        """The variance of the noise of a new observation: that of all rows, or the mean where each has its own."""
        noise = self.noise
        return noise if isinstance(noise, float) else float(np.mean(noise))

    def values(self, rows: Points) -> Tensor:
        """What `predict` gives: the mean."""
        return self.mean(rows)

    def to_send(self) -> ProcessFit:
        """What predictions need, for other machines."""
        return self

    def mean(self, rows: Points) -> Tensor:
        """The mean, (m,) or (m, t)."""
        return self.scaled(self.posterior.mean(rows))

    def noise_of(self, rows: Points, noise: Noise | None, *, latent: bool) -> Any:
        """The variance of new observations at the rows: none, a number, or those given, (m,)."""
        if noise is None:
            return 0.0 if latent else self.new_noise
        if latent:
            raise InputError("With latent=True the prediction has no noise: leave out noise=.")
        return row_variances(noise, len(rows))

    def mean_and_std(self, rows: Points, *, latent: bool, noise: Noise | None = None) -> tuple[Tensor, Tensor]:
        """The mean and deviations, (m,) or (m, t) each; `noise` gives variances of new rows."""
        added = self.noise_of(rows, noise, latent=latent)
        mean, variance = self.posterior.mean_and_variance(rows)
        std = (variance + torch.as_tensor(added, dtype=torch.float64).to(variance)).sqrt()
        return self.scaled(mean), self.scaled(std.unsqueeze(-1).expand(-1, self.seen.n_targets))

    def component(self, rows: Points, which: int) -> tuple[Tensor, Tensor]:
        """The mean and deviations of one part of the process, (m,) or (m, t) each."""
        terms = terms_of(self.posterior.kernel)
        if isinstance(which, bool) or not isinstance(which, int | np.integer) or not 0 <= which < len(terms):
            words = f"the kernel is a sum of {len(terms)}: give a number from 0 to {len(terms) - 1}."
            raise InputError(f"predict_component(component={which!r}): {words}")
        mean, variance = Component(self.posterior, terms[which]).mean_and_variance(rows)
        return self.scaled(mean), self.scaled(variance.sqrt().unsqueeze(-1).expand(-1, self.seen.n_targets))

    def covariance(self, rows: Points, *, latent: bool, noise: Noise | None = None) -> Tensor:
        """Covariances, (m, m) or (m, m, t)."""
        return self.scaled(self._covariance(rows, latent, noise).unsqueeze(-1), 2)

    def for_samples(self, rows: Points, *, latent: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Mean (m, t), covariance (m, m) and prior variances (m,) of the targets over their scale, and that."""
        prior = self.posterior.prior_variance(rows)
        return self.posterior.mean(rows), self._covariance(rows, latent), prior, self.plan.target_scale

    def scaled(self, values: Tensor, power: int = 1) -> Tensor:
        """Values (..., t) in the units of the targets; (...) for one target."""
        values = values * self.plan.target_scale.to(values) ** power
        return values.squeeze(-1) if self.seen.one_target else values

    def slope(self, rows: Points, of: str) -> Tensor:
        """The derivative of the mean or of the deviation in the rows, (m, d) or (m, t, d)."""
        slopes = slope(self.posterior, rows, of)
        slopes = slopes * self.plan.target_scale.to(slopes).unsqueeze(-1)
        return slopes.squeeze(1) if self.seen.one_target else slopes

    def leave_one_out(self) -> LeaveOneOut:
        """Of each observation given all others."""
        found = self.exact("loo").leave_one_out()
        scale = self.plan.target_scale.to(found.mean)
        values = found.mean * scale, found.std * scale, found.log_density - scale.log(), found.observed * scale
        return LeaveOneOut(*map(self.seen.given_back, values))

    def exact(self, what: str) -> ExactPosterior:
        """The posterior with a factor, or an error that says that `what` needs one."""
        if not isinstance(self.posterior, ExactPosterior):
            raise InputError(f'{what} needs method="exact", but the fit used {self.plan.method.name!r}.')
        return self.posterior

    def _covariance(self, rows: Points, latent: bool, noise: Noise | None = None) -> Tensor:
        covariance = self.posterior.covariance(rows)
        added = torch.as_tensor(self.noise_of(rows, noise, latent=latent), dtype=torch.float64)
        covariance.diagonal().add_(added.to(covariance))
        return covariance


def fit_process(plan: ProcessPlan, sample: Sample) -> ProcessFit:
    """Learn as planned, and condition on all rows."""
    owned = replace(sample, rows=sample.rows.owned())
    data = observations(owned, plan.target_scale, plan.settings.row_noise, plan.place.device)
    teaching = data if plan.taught is None else data.take(plan.taught)
    plan = _with_best_kernel(plan, teaching)
    mean, mean_reason = _mean(plan, teaching)
    optimum = _learned(plan, teaching, mean, n_copies=len(data) - len(teaching)) if plan.learns else None
    theta = plan.hyper.start if optimum is None else optimum.theta
    kernel, noise = plan.hyper.kernel_at(theta), plan.hyper.noise_at(theta)
    posterior = plan.method.posterior(kernel, noise, data, mean, plan.reason)
    return ProcessFit(plan, sample.seen, posterior, likelihood_of(plan, posterior), optimum, mean_reason)


def with_more(fit: ProcessFit, sample: Sample, noise: Noise | None) -> ProcessFit:
    """The same process given further rows, with kernel and noise as they are."""
    plan, posterior, row_noise = fit.plan, fit.posterior, None
    if posterior.data.noise is not None:
        if noise is None:
            raise InputError("partial_fit needs noise=, a variance for each new row, as fit was given them.")
        row_noise = row_variances(noise, len(sample))
    elif noise is not None:
        raise InputError("partial_fit(noise=...) is for models that were given a variance for each row.")
    seen = fit.seen.with_more(sample.seen)
    more = observations(sample, plan.target_scale, row_noise, plan.place.device)
    if isinstance(posterior, ExactPosterior):
        posterior = posterior.extended(more)
    elif isinstance(posterior, SparsePosterior) and posterior.rows is not None:
        posterior = with_sums(posterior, posterior.rows.followed_by(sums_of(posterior, more, posterior.rows.shift)))
    else:
        everything, mean = posterior.data.followed_by(more), posterior.mean_function.mean
        posterior = plan.method.posterior(posterior.kernel, posterior.noise, everything, mean, "rows were added")
    likelihood = likelihood_of(plan, posterior)
    return replace(fit, seen=seen, posterior=posterior, likelihood=likelihood, order=None, forecast_deviates=None)


def likelihood_of(plan: ProcessPlan, posterior: Posterior) -> float:
    """The log marginal likelihood in the units of the targets."""
    n = getattr(posterior, "n_rows", len(posterior.data))
    return posterior.log_marginal_likelihood() - n * float(plan.target_scale.log().sum())


def _with_best_kernel(plan: ProcessPlan, data: Observations) -> ProcessPlan:
    """The plan with the kernel that the data ask for, where it is open."""
    if not (plan.settings.any_kernel and plan.learns):
        return plan
    plans = [plan, *other_starts(plan, data)]
    mean = ConstantMean() if plan.mean is None else plan.mean
    options = {"max_iter": plan.settings.max_iter, "seed": plan.settings.seed}
    return plans[choose_kernel(data, [one.hyper for one in plans], mean, plan.place, **options)]


def _mean(plan: ProcessPlan, data: Observations) -> tuple[Mean, str]:
    """The mean function that was asked for, or that the data ask for, and why."""
    if plan.mean is not None:
        return plan.mean, ""
    most, seed = plan.settings.max_iter, plan.settings.seed
    chosen = choose_mean(data, plan.hyper, plan.place, learn=plan.learns, max_iter=most, seed=seed)
    return chosen.mean, chosen.reason


def _learned(plan: ProcessPlan, data: Observations, mean: Mean, n_copies: int) -> Maximum:
    settings = plan.settings
    found = learn(
        plan.method,
        data,
        plan.hyper,
        mean,
        plan.place,
        n_restarts=settings.n_restarts,
        max_iter=settings.max_iter,
        seed=settings.seed,
        n_learn=settings.n_learn,
        progress=settings.progress,
    )
    return replace(found, n_copies=n_copies)
