"""Lazy Gram matrices that multiply without being stored."""

from mercer.operators.base import Operator
from mercer.operators.gram import GramOperator, gram
from mercer.operators.weighted import Weighted

__all__ = ["GramOperator", "Operator", "Weighted", "gram"]
