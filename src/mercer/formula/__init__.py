"""Formulas as data: symbols record them, one simplifier, derivatives of any order, and plans that back ends run."""
