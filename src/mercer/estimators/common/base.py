"""What every kernel estimator shares: parameters of frozen kernels, tags, reports and model files."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ClassVar, Self, TypeVar, cast

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.core.errors import MercerError
from mercer.core.renamed import refuse_old_names, renamed
from mercer.core.report import Report
from mercer.core.rules import Rules
from mercer.estimators.common.parameters import check_parameters
from mercer.estimators.common.state import Saved
from mercer.files.persistence import save
from mercer.kernels import Kernel, as_kernel

Method = TypeVar("Method", bound=Callable[..., Any])


def all_or_nothing(method: Method) -> Method:
    """Make a method that fits leave the estimator as it was when it fails or is interrupted."""

    @wraps(method)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            self._check_parameters()
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast(Method, fit)


@renamed(report_="report()")
class KernelEstimator(BaseEstimator):
    """An estimator with a `kernel` parameter: a `Kernel`, a name or a function of two points."""

    kernel: Any
    own_rules: ClassVar[Rules] = {}
    saved: ClassVar[Saved]
    _fit: Any
    _keep: Any

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """As scikit-learn finds them; the signature of a class is read once."""
        names: list[str] = super()._get_param_names()
        return names

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `kernel__length_scale=2.0` replaces the frozen kernel by a changed copy."""
        refuse_old_names(type(self), params)
        inner = {name.removeprefix("kernel__"): value for name, value in params.items() if name.startswith("kernel__")}
        super().set_params(**{name: value for name, value in params.items() if not name.startswith("kernel__")})
        if inner:
            self.kernel = as_kernel(self.kernel).replace(**inner)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one safetensors file; `mercer.load(path)` reads it back."""
        save(self, path)

    def to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Plain data and arrays, from which `from_state` makes an equal object."""
        check_is_fitted(self)
        return self.saved.state(self, self._fit)

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, Tensor]) -> Self:
        """The object that `to_state` described."""
        model, fit, columns = cls.saved.model(cls, meta, arrays)
        vars(model).update(columns)
        return cast(Self, model._keep(fit, warn=False))

    def report(self) -> Report:
        """What was done, how well it went and what to worry about."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        check_parameters(self, self.own_rules)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        domain = self._domain()
        tags.input_tags.pairwise = domain == "matrix"
        tags.input_tags.string = domain == "objects"
        return tags

    def _domain(self) -> str:
        try:
            return as_kernel(self.kernel).domain
        except MercerError:  # a wrong kernel is reported by fit, not by looking at the tags
            return Kernel.domain


class WithClient(KernelEstimator):
    """An estimator with a `client`: a connection, which stays where it is."""

    client: Any

    def __getstate__(self) -> dict[str, Any]:
        """Without a connection; an address is one that others can use too."""
        return super().__getstate__() | {"client": self.client if isinstance(self.client, str) else None}

    def __sklearn_clone__(self) -> Self:
        client, self.client = self.client, None
        try:
            twin = super().__sklearn_clone__()
        finally:
            self.client = client
        twin.client = client
        return twin
