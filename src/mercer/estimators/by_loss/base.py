"""What estimators with any loss share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.core.arrays import Points
from mercer.estimators.by_loss.fit import LossFit
from mercer.estimators.common.base import WithClient
from mercer.functions import RKHSFunction
from mercer.kernels import Kernel


class LossEstimator(WithClient):
    """An estimator that keeps a `LossFit`: its function and the rows that carry it."""

    kernel_: Kernel
    dual_coef_: Any
    _fit: LossFit

    @property
    def function_(self) -> RKHSFunction:
        """The fitted function without its intercept, an element of the RKHS."""
        check_is_fitted(self)
        return RKHSFunction(self.kernel_, Points(self._fit.function.centres.values), self.dual_coef_)

    @property
    def support_(self) -> np.ndarray:
        """The rows with a coefficient other than zero, for a loss with kinks and a coefficient for every row."""
        check_is_fitted(self)
        return self._fit.support
