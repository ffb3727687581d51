"""What generated text may hold: arithmetic of names and numbers, and calls of Triton; checked before it is run."""

from __future__ import annotations

import ast
import re

from mercer.core.errors import NotTraceable

HEADER = """import triton
import triton.language as tl
from mercer.operators.backends.fused.primitives import accurate_log2, angle, arcsine, exp2_of_minus, log2_of_1_plus
from mercer.operators.backends.fused.primitives import root, versine_sine
"""
"""With these lines every text begins; no others import anything."""

PRIMITIVES = frozenset({"accurate_log2", "angle", "arcsine", "exp2_of_minus", "log2_of_1_plus", "root", "versine_sine"})

NODES = (
    *(ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Assign, ast.AugAssign, ast.For, ast.Return),
    *(ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.keyword, ast.Attribute),
    *(ast.Subscript, ast.Slice, ast.Tuple, ast.operator, ast.unaryop, ast.cmpop, ast.expr_context),
)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def checked(text: str) -> str:
    """The text, which must be three functions of Triton and nothing else.

    >>> checked(HEADER + "x = open('data')")
    Traceback (most recent call last):
    mercer.core.errors.NotTraceable: its generated text calls open
    """
    if not text.startswith(HEADER):
        raise NotTraceable("its generated text has another beginning")
    for node in ast.walk(ast.parse(text.removeprefix(HEADER))):
        problem = _problem(node)
        if problem:
            raise NotTraceable(f"its generated text {problem}")
    return text


def _problem(node: ast.AST) -> str | None:
    match node:
        case ast.FunctionDef(decorator_list=found) if [ast.unparse(each) for each in found] != ["triton.jit"]:
            return f"decorates {node.name}"
        case ast.Call(func=ast.Name(id=name)) if name not in PRIMITIVES:
            return f"calls {name}"
        case ast.Call(func=func) if not isinstance(func, ast.Name | ast.Attribute):
            return "calls what it computed"
        case ast.Attribute(value=ast.Name(id="tl"), attr=name) | ast.Name(id=name) | ast.arg(arg=name):
            return None if NAME.fullmatch(name) else f"has the name {name!r:.60}"
        case ast.Attribute(value=ast.Name(id="triton"), attr="jit"):
            return None
        case ast.Constant(value=value):
            return None if value is None or type(value) in (int, float) else f"holds {value!r:.60}"
        case ast.Attribute():
            return f"takes {node.attr!r:.60} of what it computed"
    return None if isinstance(node, NODES) else f"has a {type(node).__name__}"
