"""Training the last layer of a network alone: kernel regression with its hidden layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch  # noqa: F401
from torch import Tensor, nn

from mercer.core.errors import InputError
from mercer.estimators import KernelRidge
from mercer.kernels import FeatureMap
from mercer.neural.arguments import check


def last_hidden(module: nn.Module) -> Callable[[Tensor], Tensor]:
    """The function from rows to what the last linear layer of a module reads.

    >>> module = torch.nn.Sequential(torch.nn.Linear(2, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1))
    >>> last_hidden(module)(torch.ones(3, 2)).shape
    torch.Size([3, 5])
    """
    check(module=module)
    layers = [part for part in module.modules() if isinstance(part, nn.Linear)]
    if not layers:
        raise InputError("The module has no torch.nn.Linear layer, so that it has no last layer to train.")

    def hidden(rows: Tensor) -> Tensor:
        seen: list[Tensor] = []
        hook = layers[-1].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        like = layers[-1].weight
        try:
            module(rows.to(like))
        finally:
            hook.remove()
        return seen[-1].detach().to(rows)

    return hidden


def last_layer_regression(module: nn.Module, X: Any, y: Any, *, alpha: float = 1.0, **params: Any) -> KernelRidge:
    r"""Ridge regression of y on the last hidden layer of a network whose other weights stay as they are.

    It is kernel ridge regression with :math:`k(x, z) = \varphi(x) \cdot \varphi(z)`, at any width, and it is that with
    which it is fitted: a `KernelRidge`, to which `params` go, by default without an intercept.

    >>> module = torch.nn.Sequential(torch.nn.Linear(2, 50), torch.nn.ReLU(), torch.nn.Linear(50, 1))
    >>> X = torch.randn(20, 2)
    >>> last_layer_regression(module, X, X[:, 0], alpha=1e-3).predict(X).shape
    torch.Size([20])
    """
    return KernelRidge(FeatureMap(last_hidden(module)), alpha=alpha, **{"fit_intercept": False} | params).fit(X, y)
