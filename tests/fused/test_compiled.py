"""The fused loops compile for Hopper without a GPU: what the interpreter cannot see shows in the assembly."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

triton = pytest.importorskip("triton")
import torch  # noqa: E402
from laws import columns, gram, normal, points  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource, make_backend  # noqa: E402
from triton.runtime.jit import JITFunction, create_function_from_signature  # noqa: E402

from mercer.core.arrays import as_points  # noqa: E402
from mercer.formula.simplify import reduced  # noqa: E402
from mercer.kernels import Gaussian, Kernel, Laplace, Linear  # noqa: E402
from mercer.operators.backends.fused import kernels, pack, samples, support  # noqa: E402
from mercer.operators.backends.fused.layout import layout  # noqa: E402
from mercer.operators.backends.fused.profile import profile  # noqa: E402
from mercer.operators.backends.fused.source import Featurewise, Products, functions, source  # noqa: E402
from mercer.operators.backends.fused.tiles import COMPILED, pad_of, tile  # noqa: E402
from mercer.testing.compositions import random_kernel  # noqa: E402

TARGET = GPUTarget("cuda", 90, 32)
BACKEND = make_backend(TARGET)
SHARED_MEMORY = 227 * 1024
Launch = tuple[Any, dict[str, Any], dict[str, Any], Any, dict[str, Any]]  # of a function, with options, values, kinds
POINTERS = dict.fromkeys("ABPQCVY", "*fp32") | {"A": "*fp16", "B": "*fp16", "FLAGS": "*i8"}
NUMBERS = dict.fromkeys(("n", "m", "span", "spans", "count"), "i32")


def compiled(kernel: Kernel, d: int, t: int, *, guarded: bool = False, mirror: bool = False) -> Any:
    """The product of a kernel over d features with t right-hand sides, compiled for compute capability 9.0."""
    text = profile(reduced(kernel.program(as_points(np.zeros((1, d))))))
    grid = layout(d, "fast")
    guard = {"exact": Featurewise(d, 0, 0, 1, True, "l2"), "near": 2} if guarded else {}
    inputs = (Products(grid, 0, **guard),)
    size = tile([grid], t, roots=text.takes_roots, longer=len(text.lines) > 2, mirror=mirror)
    fixed = functions(source(text, inputs, grid.width)) | {"BM": size.BM, "BN": size.BN, "STAGES": size.STAGES}
    fixed |= {"INNER": size.INNER, "POLY": size.POLY, "FLAGGED": kernels.WRITE if guarded else kernels.NO}
    fixed |= {"FM": size.BM, "FN": size.BN}
    if mirror:
        function = kernels.product_mirrored
    elif t == 1:
        function = kernels.product if grid.resident else kernels.product_wide
    else:
        function = kernels.product_many
    given = {"FOLD": 2 if mirror else size.FOLD, "T": t, "TERM": kernels.term_type()}
    fixed |= {name: value for name, value in given.items() if name in function.arg_names}
    types = POINTERS | NUMBERS | ({"Y": "*fp64"} if mirror else {} if t == 1 else {"V": "*bf16"})
    names = function.arg_names
    types = {name: kind for name, kind in types.items() if name in names}
    program = ASTSource(
        function,
        {name: types.get(name, "constexpr") for name in names},
        constexprs={(names.index(name),): value for name, value in fixed.items()},
        attrs={(names.index(name),): [["tt.divisibility", 16]] for name in types},
    )
    return triton.compile(program, target=TARGET, options={"num_warps": size.warps} | COMPILED)


@pytest.fixture(autouse=True)
def _not_interpreted() -> None:
    if not hasattr(kernels.product, "cache_key"):
        pytest.skip("Triton interprets in this process")


@pytest.mark.parametrize(
    ("kernel", "d", "t", "guarded"),
    [(Gaussian(), 3, 1, False), (Laplace(), 32, 1, True), (Gaussian(), 300, 1, True), (Gaussian(), 10, 16, False)],
)
def test_tiles_run_on_tensor_cores_and_fit_the_chip(kernel: Kernel, d: int, t: int, guarded: bool) -> None:
    program = compiled(kernel, d, t, guarded=guarded)
    assert "wgmma.mma_async" in program.asm["ptx"]
    assert program.metadata.shared <= SHARED_MEMORY


@pytest.mark.parametrize(("kernel", "d", "guarded"), [(Gaussian(), 3, False), (Laplace(), 32, True)])
def test_tiles_that_serve_twice_are_evaluated_once(kernel: Kernel, d: int, guarded: bool) -> None:
    program = compiled(kernel, d, 1, guarded=guarded, mirror=True)
    loop = program.asm["ttgir"].split("scf.for", 1)[1]
    assert loop.count("inline_asm") == compiled(kernel, d, 1, guarded=guarded).asm["ttgir"].count("inline_asm")
    assert "wgmma.mma_async" in program.asm["ptx"]
    assert "red.global" in program.asm["ptx"] or "atom.global" in program.asm["ptx"]
    assert program.metadata.shared <= SHARED_MEMORY


def test_a_gaussian_is_one_product_and_one_exponential() -> None:
    loop = compiled(Gaussian(), 3, 1).asm["ttgir"].split("scf.for", 1)[1]
    assert loop.count("warp_group_dot ") == 1
    assert loop.count("elementwise_inline_asm") == 1


class Launches(list[Launch]):
    """`near` says whether tiles are marked as having near points, which are then taken again."""

    near = False


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Launches:
    """Launches are only recorded."""
    found = Launches()

    def record(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> None:
        values, kinds, more = create_function_from_signature(self.signature, self.params, BACKEND)(*args, **options)
        if self is pack.norms:
            values["OUT"].fill_(1.0)
        if "FLAGS" in values:
            values["FLAGS"].fill_(found.near)
        found.append((self, options, values, kinds, more))

    monkeypatch.setattr(JITFunction, "run", record)
    monkeypatch.setattr(support, "interpreted", lambda: True)
    monkeypatch.setattr(samples, "truncation_harms", lambda *_: False)  # a choice by the data, not by their number
    return found


@pytest.mark.parametrize(("d", "largest"), [(3, 30_000), (300, 1_000)])
def test_samples_of_other_sizes_compile_nothing(d: int, largest: int, launches: Launches) -> None:
    def multiply(n: int, m: int) -> set[tuple[str, str]]:
        """By what Triton would look up a compiled loop with."""
        launches.clear()
        x, z = (points(normal(count + 1, d, seed)[:count]) for seed, count in enumerate((n, m)))
        for t in ((), (3,)):
            gram(Gaussian(), x, z).product(columns(m, *t))
        gram(Gaussian(), z, z, symmetric=True).product(columns(m))
        gram(Gaussian(), x, z).block(torch.arange(n), torch.arange(m)[:2])
        return {(function.fn.__name__, str(kinds)) for function, _, _, kinds, _ in launches}

    known = multiply(70, 300)
    assert len(known) > 5
    for n, m in ((64, 256), (1, 300), (70, 2), (largest, 500), (500, largest), (500, 4096)):
        assert multiply(n, m) == known


@pytest.mark.parametrize("kernel", [Gaussian(), Laplace(metric="l1") + Gaussian() * Linear(1.0)], ids=repr)
def test_every_launch_says_how_to_compile_it(kernel: Kernel, launches: Launches) -> None:
    """Else an upgrade of Triton, which changes what it does unasked, would change numbers."""
    launches.near = True
    x, z = points(normal(70, 300, 0)), points(normal(50, 300, 1))
    for t in ((), (3,)):
        gram(kernel, x, z).product(columns(50, *t))
    one = gram(kernel, z, z, same=True, symmetric=True)
    one.product(columns(50))
    one.block(torch.arange(50), torch.arange(50))
    names = {function.fn.__name__ for function, *_ in launches}
    assert names >= {"norms", "columns", "product_wide", "product_many", "product_mirrored", "dense", "diagonal"}
    assert all(options.items() >= COMPILED.items() for _, options, *_ in launches)


def recompiled(launch: Launch) -> Any:
    function, *how = launch
    settings, types, constants, hints = function._pack_args(BACKEND, *how)
    return triton.compile(ASTSource(function, types, constants, hints), target=TARGET, options=settings.__dict__)


def layouts_by_place(program: Any) -> dict[str, set[int]]:
    """The upper halves of the descriptors of matrix operands in shared memory, by register of the address."""
    layouts: dict[str, set[int]] = {}
    for place, descriptor in re.findall(r"(?:or\.b64|add\.s64)\s+%rd\d+, (%rd\d+), (-?\d{10,});", program.asm["ptx"]):
        layouts.setdefault(place, set()).add(int(descriptor) >> 32)
    return layouts


WIDE = Gaussian() + Laplace(2.0) * Linear(1.0)


@pytest.mark.parametrize(
    ("kernel", "d", "careful", "t"),
    [
        (Gaussian(), 90, True, 20),
        (Laplace(), 60, True, 20),
        (Laplace(), 110, False, 100),
        (WIDE, 60, False, 2),
        (WIDE, 90, False, 100),
        (Laplace(metric="l1") + Gaussian(), 48, False, 2),
        (Laplace(metric="l1") * Linear(1.0), 20, False, 20),
        (WIDE, 300, False, 100),
    ],
)
def test_no_shared_memory_is_read_in_two_layouts(
    kernel: Kernel, d: int, careful: bool, t: int, launches: Launches, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else ptxas 12.8 takes the address of one of them from a register that was never written."""
    monkeypatch.setattr(samples, "truncation_harms", lambda *_: careful)
    gram(kernel, points(normal(70, d, 0)), points(normal(50, d, 1))).product(columns(50, t))
    program = recompiled(next(found for found in launches if found[0] is kernels.product_many))
    layouts = layouts_by_place(program)
    assert len(layouts) > 2
    assert all(len(found) == 1 for found in layouts.values())
    assert program.metadata.shared <= SHARED_MEMORY


@pytest.mark.parametrize("d", [12, 48, 130])
@pytest.mark.parametrize("beside", [None, Gaussian(), WIDE], ids=repr)
def test_loops_over_features_have_registers_for_their_sums(d: int, beside: Kernel | None, launches: Launches) -> None:
    launches.near = True
    kernel = Laplace(metric="l1") if beside is None else Laplace(metric="l1") + beside
    x, z = points(normal(70, d, 0)), points(normal(50, d, 1))
    for t in ((), (3,), (100,)):
        gram(kernel, x, z).product(columns(50, *t))
    gram(kernel, z, z, same=True, symmetric=True).product(columns(50))
    loops = [found for found in launches if found[0].fn.__name__.startswith("product")]
    assert len(loops) >= 4
    for _, options, values, _, _ in loops:
        assert values["BM"] * values["BN"] <= 32 * 32 * options["num_warps"]
        assert options["maxnreg"] is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
def test_no_shared_memory_is_read_in_two_layouts_in_compositions(seed: int, launches: Launches) -> None:
    rng = np.random.default_rng(seed)
    d, t = int(rng.choice([5, 20, 48, 90, 130])), int(rng.choice([2, 20, 100]))
    x, z = points(normal(70, d, 0)), points(normal(50, d, 1))
    drawn = (random_kernel(rng, d) for _ in range(50))
    kernel = next(k for k in drawn if support.supports(k.program(x), x, z) is None)
    if seed % 2:
        kernel = kernel + Laplace(metric="l1")
    launches.near = True
    gram(kernel, x, z).product(columns(50, t))
    loops = [found for found in launches if found[0] is kernels.product_many]
    assert loops
    for program in map(recompiled, loops):
        assert all(len(found) == 1 for found in layouts_by_place(program).values())
        assert program.metadata.shared <= SHARED_MEMORY


PLAIN, SCALED, ADDED_UP = Laplace(2.0), Laplace(2.0) * Linear(1.0), Laplace(metric="l1")
AGAIN = [(40, PLAIN, Gaussian()), (40, SCALED, ADDED_UP), (130, PLAIN, ADDED_UP), (130, SCALED, Gaussian())]
REPEATED = [(40, PLAIN, ADDED_UP), (40, SCALED, Gaussian()), (130, PLAIN, Gaussian()), (130, SCALED, ADDED_UP)]


@pytest.mark.parametrize(
    ("d", "kernel", "beside"), [*AGAIN, *(pytest.param(*case, marks=pytest.mark.slow) for case in REPEATED)]
)  # each pair of values once, the other half in the slow tests
def test_tiles_taken_again_compile_and_fit_the_marks(
    d: int, kernel: Kernel, beside: Kernel, launches: Launches
) -> None:
    launches.near = True
    kernel = beside + kernel
    x, z = points(normal(70, d, 0)), points(normal(50, d, 1))
    for t in ((), (3,), (100,)):
        gram(kernel, x, z).product(columns(50, *t))
    gram(kernel, z, z, same=True, symmetric=True).product(columns(50))
    gram(kernel, x, z).block(torch.arange(70), torch.arange(50))
    again = [found for found in launches if found[2].get("FLAGGED") == kernels.ONLY]
    assert len(again) == 5
    for launch in again:
        values = launch[2]
        assert values["FM"] % values["BM"] == values["FN"] % values["BN"] == 0
        assert recompiled(launch).metadata.shared <= SHARED_MEMORY


@pytest.mark.parametrize("d", [3, 32, 90, 300, 784])
@pytest.mark.parametrize("t", [0, 1, 2, 16, 32, 64, 128])
@pytest.mark.parametrize("mirror", [False, True])
def test_every_tile_divides_what_samples_are_padded_to(d: int, t: int, mirror: bool) -> None:
    for precision in ("fast", "split"):
        grid = layout(d, precision)
        for several in (1, 2, 3):
            size = tile([grid] * several, t, roots=True, mirror=mirror)
            assert pad_of(chunked=not grid.resident) % size.BM == 0
            assert pad_of(chunked=not grid.resident) % size.BN == 0
