"""What keeps the house in order, counted: ``python -m benchmarks.house`` (`--most N` shows N pairs of repeated code).

Lines of code are those without docstrings, comments and blanks. Repeated code is six or more lines in a row that stand
in two places, names and numbers included. Private members of an estimator are those of its own and of our base classes.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import tokenize
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src" / "mercer"
FEATURES = {
    "statistics": ("stats/",),
    "theory and forecasts": (
        "theory/", "estimators/common/forecast", "estimators/by_loss/forecast", "estimators/ridge/forecast",
        "cli/forecast", "plots/learning_curve", "plots/degrees", "plots/risk",
        "cli/app.py::forecast_command", "cli/jobs.py::run_forecast",
        "estimators/ridge/kernel_ridge.py::KernelRidge.learning_curve",
        "estimators/ridge/kernel_ridge.py::KernelRidge.samples_needed",
        "estimators/by_loss/kernel_classifier.py::KernelClassifier.learning_curve",
        "estimators/by_loss/kernel_classifier.py::KernelClassifier.samples_needed",
    ),
    "networks": (
        "neural/", "kernels/activations", "kernels/arc_cosine", "kernels/hermite", "kernels/networks", "kernels/nngp",
        "kernels/ntk", "kernels/wide_layer", "solvers/flow", "estimators/ridge/flow", "features/network",
        "estimators/transformers/random_network",
    ),
    "feature machines": (
        "estimators/rfm/", "features/gradients", "features/lens", "features/recursive", "plots/features",
    ),
    "tables": (
        "estimators/tabular/", "data/table", "data/texts", "data/rows/tables", "kernels/categorical", "cli/reading",
        "cli/task", "cli/frame_model", "cli/account", "cli/in_parts",
    ),
    "losses over rows in parts": (
        "estimators/by_loss/streamed", "estimators/by_loss/squared", "estimators/gaussian/streamed", "solvers/passes",
        "solvers/loss_sums", "solvers/journal", "solvers/sampled_curvature", "data/rows/coded", "data/engines/labels",
        "processes/sparse_rows", "estimators/common/spread", "data/rows/arrays.py::as_labels",
        "data/rows/dask.py::_as_labels", "data/rows/dask.py::DaskTable",
        "data/rows/parquet.py::ParquetRows._found_labels", "estimators/by_loss/plan.py::plan_source",
    ),
    "intervals and reports": (
        "estimators/gaussian/regressor.py::GaussianProcessRegressor.components_",
        "estimators/gaussian/regressor.py::GaussianProcessRegressor.plot_components",
        "estimators/gaussian/regressor.py::GaussianProcessRegressor.predict_component",
        "estimators/gaussian/plot.py::components_plot", "estimators/gaussian/fit.py::ProcessFit.component",
        "estimators/by_loss/kernel_classifier.py::KernelClassifier.margin_", "cli/show.py::_show_confusion",
        "estimators/ridge/intervals", "estimators/by_loss/intervals", "estimators/gaussian/intervals",
        "estimators/common/refits", "selection/left_out", "estimators/common/account", "estimators/common/concerns",
        "processes/components", "plots/components", "plots/surface",
    ),
    "kernels with few features": (
        "kernels/explicit", "solvers/primal", "estimators/ridge/primal", "estimators/common/linear",
    ),
    "other kernels, projections": (
        "kernels/chi_squared", "kernels/cosine", "kernels/nonnegative", "kernels/columns", "features/project",
        "features/residual",
    ),
    "choice of kernel and alpha": (
        "selection/deciding", "selection/search", "selection/spectral_path", "processes/choose_kernel",
    ),
    "gradients and quadratic forms of products": (
        "operators/gradients", "operators/pull_back", "operators/zero_diagonal",
        "operators/base.py::Operator.quadratic", "operators/backends/tiles.py::Tiles.quadratic",
    ),
    "intercepts and units of columns": (
        "solvers/centring", "operators/centred.py::Lift", "solvers/row_blocks.py::CentredBlock",
        "solvers/falkon.py::Centre", "selection/few.py::_Centre", "kernels/spread", "kernels/median.py::_auto_scales",
        "estimators/common/alpha_sample", "estimators/ridge/alpha.py::path_of_sample",
    ),
    "solver objects": ("solvers/newton_solvers", "estimators/common/solvers"),
    "directions": (
        "features/principal.py::principal_subspace_of_features", "features/principal.py::Powers",
        "features/principal.py::PrincipalSubspace.with_variance",
        "estimators/transformers/kernel_pca.py::KernelPCA.components_",
        "estimators/transformers/kernel_pca.py::KernelPCA.reconstruction_error",
    ),
}  # fmt: skip
"""What is there for a public feature alone which came after the house was drawn, counted apart: files whose names start
so, and a function or class of an older file, ``file.py::name``."""
BEFORE = 24_356
"""Lines of code when the house was drawn."""
RUN = 6
"""Lines in a row that make a repetition."""
NOT_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(text: str) -> list[tuple[int, str]]:
    """The lines of code with their numbers, imports left in, docstrings and strings that stand alone left out."""
    told: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            told.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    kept: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            kept.update(range(token.start[0], token.end[0] + 1))
    rows = text.splitlines()
    return [(number, rows[number - 1].strip()) for number in sorted(kept - told)]


def repeated(files: dict[str, list[tuple[int, str]]]) -> list[tuple[int, str, str]]:
    """Pairs of places with the same lines in a row: how many, and where, the longest first."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, lines in files.items():
        texts = [text for _, text in lines]
        for i in range(len(lines) - RUN + 1):
            run = tuple(texts[i : i + RUN])
            if not any(text.startswith(("import ", "from ")) for text in run) and sum(map(len, run)) > 20 * RUN:
                places[run].append((name, i))
    starts: Counter[tuple[str, str, int, int]] = Counter()
    seen = {(a, b) for found in places.values() for k, a in enumerate(found) for b in found[k + 1 :]}
    for (f, i), (g, j) in sorted(seen):
        if ((f, i - 1), (g, j - 1)) not in seen:
            length = RUN
            while ((f, i + length - RUN + 1), (g, j + length - RUN + 1)) in seen:
                length += 1
            starts[f, g, i, j] = length
    return [(length, f"{f}:{files[f][i][0]}", f"{g}:{files[g][j][0]}") for (f, g, i, j), length in starts.most_common()]


def lines_of(entry: str, texts: dict[str, str], files: dict[str, list[tuple[int, str]]]) -> int:
    """Lines of code of an entry of `FEATURES`."""
    file, _, name = entry.partition("::")
    if not name:
        return sum(len(lines) for other, lines in files.items() if other.startswith(file))
    node: Any = ast.parse(texts[file])
    for part in name.split("."):
        node = next(inner for inner in node.body if getattr(inner, "name", None) == part)
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return sum(first <= number <= node.end_lineno for number, _ in files[file])


def private_members(estimator: type) -> list[str]:
    """Methods and properties with an underscore, of the class and of our own classes that it comes from."""
    ours = [cls for cls in estimator.__mro__ if cls.__module__.startswith("mercer")]
    kinds = (property, classmethod, staticmethod)
    return sorted(
        {
            name
            for cls in ours
            for name, value in vars(cls).items()
            if name.startswith("_")
            and not name.startswith("__")
            and (inspect.isfunction(value) or isinstance(value, kinds))
        }
    )


def is_number(value: ast.expr | None) -> bool:
    """Whether an expression is a number, or numbers."""
    match value:
        case ast.Constant():
            return isinstance(value.value, int | float) and not isinstance(value.value, bool)
        case ast.UnaryOp():
            return is_number(value.operand)
        case ast.BinOp():
            return is_number(value.left) and is_number(value.right)
        case ast.Tuple():
            return bool(value.elts) and all(map(is_number, value.elts))
        case ast.Dict():
            return bool(value.values) and all(map(is_number, value.values))
    return False


def chosen(tree: ast.Module) -> list[tuple[str, bool]]:
    """The numbers that a module defines, and whether a docstring follows each."""
    found = []
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.Assign | ast.AnnAssign) and is_number(node.value):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            found.append((ast.unparse(target), documented))
    return found


def anything(tree: ast.AST) -> tuple[int, int]:
    """Parameters that are typed Any, and all parameters with a type."""
    typed = [
        ast.unparse(argument.annotation)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        if argument.annotation is not None
    ]
    return typed.count("Any"), len(typed)


def from_outside(tree: ast.Module) -> int:
    """Uses of underscore names of a model or an estimator in functions that stand in no class."""
    owners = {"model", "estimator"}
    outside = [statement for statement in tree.body if not isinstance(statement, ast.ClassDef)]
    return sum(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in owners
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        for statement in outside
        for node in ast.walk(statement)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=0, help="pairs of repeated code that are shown")
    most = parser.parse_args().most
    texts = {str(path.relative_to(SOURCE)): path.read_text() for path in sorted(SOURCE.rglob("*.py"))}
    files = {name: code_lines(text) for name, text in texts.items()}
    packages = Counter[str]()
    for name, lines in files.items():
        packages[name.split("/")[0]] += len(lines)
    print(f"lines of code {sum(packages.values()):,}: " + ", ".join(f"{k} {n:,}" for k, n in packages.most_common()))
    apart = {feature: sum(lines_of(entry, texts, files) for entry in entries) for feature, entries in FEATURES.items()}
    rest = sum(packages.values()) - sum(apart.values())
    print(f"of these for features since: {sum(apart.values()):,} ({', '.join(f'{k} {n:,}' for k, n in apart.items())})")
    print(f"without them {rest:,}, against {BEFORE:,} before")
    trees = {name: ast.parse(text) for name, text in texts.items()}
    counts = [anything(tree) for name, tree in trees.items() if name.startswith("estimators/")]
    some, all_ = map(sum, zip(*counts, strict=True))
    print(f"parameters typed Any in estimators: {some} of {all_} ({some / all_:.0%})")
    print(f"underscore names of models from outside: {sum(map(from_outside, trees.values()))}")
    here = {name: len(chosen(tree)) for name, tree in trees.items()}
    gathered = sum(count for name, count in here.items() if name.endswith(("dials.py", "costs.py")))
    print(
        f"numbers that modules define: {gathered} in dials.py and costs.py, {sum(here.values()) - gathered} elsewhere"
    )
    import mercer
    from mercer import estimators

    classes = [getattr(mercer, name) for name in estimators.__all__ if inspect.isclass(getattr(estimators, name))]
    print("private members: " + ", ".join(f"{cls.__name__} {len(private_members(cls))}" for cls in classes))
    pairs = repeated(files)
    print(f"pairs of places that share {RUN} lines or more: {len(pairs)}")
    for length, one, other in pairs[:most]:
        print(f"  {length:3} lines  {one}  {other}")


if __name__ == "__main__":
    main()
