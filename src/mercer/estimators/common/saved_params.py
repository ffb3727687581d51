"""What the parameters of estimators may be in a model file, by name: one word means the same for all estimators."""

from __future__ import annotations

from dataclasses import fields

from mercer import losses
from mercer.core.devices import DTYPES
from mercer.core.errors import MercerError
from mercer.files.kinds import FLAG, TEXT, Either, Kind, Pairs, Plain, Several, Table, number, one_of, optional, whole
from mercer.functions.fourier import METHODS as DRAWS
from mercer.kernels import as_kernel, from_dict
from mercer.kernels.activations import FUNCTIONS
from mercer.processes.methods import METHODS
from mercer.processes.priors import PRIORS
from mercer.solvers.choose import LOSS_SOLVERS
from mercer.solvers.registry import RIDGE_SOLVERS
from mercer.solvers.registry import from_dict as solver_from_dict
from mercer.solvers.top_eigenpairs import EIGENSOLVERS

PLACE = ("client", "checkpoint", "device", "memory_budget", "verbose")
"""Parameters of where and how a fit runs, not of what it finds: they stay on the machine where they were given.

A file that had them would choose for its reader, such as which cluster gets the rows.
"""

GIVEN = "given"
"""Stands for landmarks that are the points of the model, so that they are written once."""


def _is_kernel(value: object) -> bool:
    try:
        return bool(from_dict(value) if isinstance(value, dict) else isinstance(value, str) and as_kernel(value))
    except MercerError:
        return False


def _is_loss(value: object) -> bool:
    try:
        return bool(losses.from_dict(value))
    except MercerError:
        return False


def _is_solver(value: object) -> bool:
    try:
        return isinstance(value, dict) and bool(solver_from_dict(value))
    except MercerError:
        return False


SOLVER: Kind = Plain("the name of a solver, or a solver by its name and fields", _is_solver)
KERNEL: Kind = Plain("a kernel (one of your own is registered before: mercer.kernels.register)", _is_kernel)
LOSS: Kind = Either(
    (one_of(*losses.LOSSES), Plain("a loss (one of your own is registered before: mercer.losses.register)", _is_loss))
)
COUNT = optional(whole(1))
LEVEL = number(above=0, below=1)
ALPHA = Either((number(0), Several(number(0), 1), one_of("loo", "gcv", "auto")))
ROWS = Several(Several(number(), 1), 1)
PRIOR = Either(
    tuple(
        Table({"prior": one_of(name)} | {f.name: number(above=0) for f in fields(cls)}) for name, cls in PRIORS.items()
    )
)

PARAMS: dict[str, Kind] = {
    "activation": one_of(*FUNCTIONS),
    "alpha": ALPHA,
    "alphas": optional(Several(number(0), 1)),
    "bias_scale": number(0),
    "bounds": optional(Pairs(TEXT, Either((one_of("fixed"), Several(number(), 1), ROWS)))),
    "center": FLAG,
    "class_weight": Either((one_of(None, "balanced"), Pairs(Either((TEXT, FLAG, number())), number(0)))),
    "degree": whole(),
    "delta": number(above=0),
    "dtype": one_of(None, "auto", *DTYPES),
    "epsilon": number(0),
    "fit_intercept": FLAG,
    "inverse_alpha": ALPHA,
    "inverse_kernel": KERNEL,
    "kernel": Either((one_of("auto"), KERNEL, number(above=0))),
    "landmarks": Either((one_of(None, "uniform", "pivoted", "leverage", GIVEN), ROWS, Several(TEXT, 1))),
    "loss": LOSS,
    "matrix": one_of("auto", "diagonal", "full"),
    "max_iter": COUNT,
    "mean": Either((one_of("auto", "zero", "constant", "linear"), number())),
    "method": one_of("auto", *METHODS, *DRAWS),
    "n_components": COUNT,
    "n_features": COUNT,
    "n_folds": whole(2),
    "n_landmarks": COUNT,
    "n_learn": COUNT,
    "n_restarts": whole(),
    "noise": Either((one_of("learn"), number(0), Several(number(0), 1))),
    "tune": Either((FLAG, one_of("scale", "ard"))),
    "pre_image": one_of("ridge", "fixed_point"),
    "priors": optional(Pairs(TEXT, PRIOR)),
    "quantiles": Either((LEVEL, Several(LEVEL, 1))),
    "random_state": optional(whole()),
    "solver": Either((one_of(*EIGENSOLVERS, *LOSS_SOLVERS, *RIDGE_SOLVERS), SOLVER)),
    "standardize": FLAG,
    "tol": LEVEL,
    "units": one_of("spread", "raw"),
    "weight_scale": number(0),
}
