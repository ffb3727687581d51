"""Lazy Gram matrices that multiply without being stored."""

from mercer.operators.base import Operator
from mercer.operators.centred import Centred
from mercer.operators.gram import GramOperator, gram
from mercer.operators.stored import Stored
from mercer.operators.weighted import Weighted
from mercer.operators.zero_diagonal import ZeroDiagonal

__all__ = ["Centred", "GramOperator", "Operator", "Stored", "Weighted", "ZeroDiagonal", "gram"]
