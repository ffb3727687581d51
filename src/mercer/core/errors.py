"""The errors mercer raises: each says what was wrong, where, and what to do."""

from __future__ import annotations


class MercerError(Exception):
    """Base class of every error that mercer raises on purpose."""


class InputError(MercerError, ValueError):
    """A value that cannot be used: the message names the argument and the value."""


class InputTypeError(MercerError, TypeError):
    """An argument of a type that cannot be used."""


class NotPositiveDefiniteError(InputError):
    """A Gram matrix with a negative eigenvalue: the function given is not a kernel."""


class NotFiniteError(InputError):
    """Kernel values, or numbers made of them, that are NaN or too large for floating-point numbers."""


class MemoryBudgetError(MercerError, MemoryError):
    """A job that cannot fit its memory budget: the message says what would."""


class CheckpointError(InputError):
    """A checkpoint that belongs to another fit."""


class ModelFileError(MercerError, ValueError):
    """A model file that is damaged, truncated, hostile or of an unknown format."""


class NotTraceable(MercerError):
    """A kernel whose formula cannot be written over symbols; back ends fall back to dense tiles."""


class ClusterError(MercerError, RuntimeError):
    """A cluster that is not there, has lost all its workers, or whose workers cannot do the work."""
