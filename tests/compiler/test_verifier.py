"""The verifier: a pass that changes what a program computes is named, and what is right is left alone."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.shared.choice import backend_of
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.ir.program import Access, Program, Reduction, Segment
from micrograd.compiler.passes import allocate, field
from micrograd.compiler.passes.field import PRIME
from micrograd.compiler.passes.interpreters import VerificationError, applied
from micrograd.compiler.passes.lists import NATIVE
from micrograd.compiler.passes.stages import Made, Pass, run_stages
from micrograd.compiler.passes.verifier import Verifier
from micrograd.compiler.tracing.source import Source
from micrograd.engine import primitives
from micrograd.engine.primitive import Primitive, composite

pytestmark = pytest.mark.slow

NO_INPUTS = np.zeros(0, dtype=np.int64)
MODEL = mg.nn.MLP(2, [3, 2])


def function(x, index):
    """Sums, maxima, primitives, constants, copies and a table."""
    out = MODEL(x)
    largest = mg.softmax(out)
    return mg.take(largest, index) / 3 + mg.maximum(-out[0], 0.5), out[1] * 2.0 - (x[0] - 1.0)


def with_pass(after, change, f=function, arguments=([0.5, -1.5], 1)):
    """Compile a function with one pass more, which is verified as all of them are."""
    passes = list(NATIVE)
    passes.insert([each.name for each in passes].index(after) + 1, Pass("wrong", lambda thing, request: change(thing)))
    request = replace(backend_of("llvm").request(verify=True), passes=tuple(passes), wanted=np.arange(3))
    return run_stages(Made(Source(f, Structure((arguments, {})))), "compile", request).thing


def with_terms(graph, **changed):
    return replace(graph, terms=replace(graph.terms, **changed))


def without_a_term(graph):
    several = np.flatnonzero(graph.counts()[graph.terms.owner] > 1)[0]
    return replace(graph, terms=graph.terms.kept(np.arange(len(graph.terms.owner)) != several))


def with_operands_swapped(graph):
    return replace(
        graph, applications=tuple(replace(part, operands=part.operands[:, ::-1]) for part in graph.applications)
    )


def with_maxima_as_sums(graph):
    return replace(graph, kind=np.minimum(graph.kind, 1))


def with_kernels(program, change):
    return replace(program, kernels=tuple(change(list(program.kernels))))


def reading_the_next(kernels):
    kernel = next(kernel for kernel in kernels if isinstance(kernel, Reduction) and kernel.columns > 1)
    first = replace(kernel.segments[0].first, base=kernel.segments[0].first.base + 1)
    changed = replace(kernel, segments=(replace(kernel.segments[0], first=first), *kernel.segments[1:]))
    return [changed if each is kernel else each for each in kernels]


def writing_over_a_constant(program):
    start, _ = program.constants[0]
    last = Reduction(1, 1, Access(start), (Segment(3.0, 1, Access(start), None),))
    return replace(program, kernels=(*program.kernels, last))


@pytest.mark.parametrize(
    ("after", "change", "said"),
    [
        ("cse", lambda columns: columns._replace(numbers=columns.numbers + 1), "wrong: output 0 differs"),
        ("cse", lambda columns: columns._replace(operations=columns.operations[:-1]), "is read before it is written"),
        ("normalise", without_a_term, "wrong: output 0 differs, the first of 2 among 2"),
        ("normalise", with_operands_swapped, "wrong: output 0 differs"),
        ("normalise", with_maxima_as_sums, "wrong: output 0 differs"),
        ("normalise", lambda graph: replace(graph, outputs=graph.outputs[::-1]), "wrong: output 0 differs"),
        ("normalise", lambda graph: with_terms(graph, coefficient=-graph.terms.coefficient), "output 0 differs"),
        (
            "adjoint",
            lambda graph: replace(graph, gradients=graph.gradients[::-1]),
            "gradient 0 differs, the first of 2",
        ),
        ("adjoint", lambda graph: replace(graph, gradients=graph.gradients[:-1]), "were 3 gradients, and there are 2"),
        ("reroll", lambda program: with_kernels(program, lambda each: each[::-1]), "output 0 differs"),
        ("reroll", lambda program: with_kernels(program, reading_the_next), "output 0 differs"),
        ("reroll", writing_over_a_constant, "differs"),
        ("allocate", lambda program: replace(program, outputs=program.outputs[:1]), "were 2 outputs, and there are 1"),
    ],
)
def test_what_a_wrong_pass_changes_is_named(after, change, said):
    with pytest.raises(VerificationError, match=said):
        with_pass(after, change)


def test_a_pass_that_changes_nothing_is_right():
    with_pass("cse", lambda columns: columns)
    with_pass("adjoint", lambda graph: graph.without_the_unused())


def test_a_program_that_reads_what_was_not_written_is_wrong():
    graph = run_stages(
        Made(Source(lambda x: mg.exp(x) * mg.sin(x), Structure(((0.5,), {})))), "split", backend_of("numpy").request()
    ).thing
    program = run_stages(
        Made(graph, dict.fromkeys(["trace", "cse", "normalise", "batch", "adjoint", "split"], 0.0)),
        "reroll",
        backend_of("numpy").request(),
    ).thing
    Verifier().check("reroll", graph, program, NO_INPUTS)
    with pytest.raises(VerificationError, match=r"reroll: number \d is read before it is written"):
        Verifier().check("reroll", graph, replace(program, kernels=program.kernels[1:]), NO_INPUTS)


def test_an_adjoint_that_is_wrong_is_found_by_a_derivation_of_its_own(monkeypatch):
    from micrograd.compiler.passes import adjoint

    right = adjoint._through_terms

    def wrong(terms, *others):
        right(replace(terms, coefficient=np.abs(terms.coefficient)), *others)

    x, y = Value(2.0), Value(3.0)
    fast = mg.compile(lambda x, y: x * y - y, verify=True)
    fast(x, y).backward()
    monkeypatch.setattr(adjoint, "_through_terms", wrong)
    with pytest.raises(VerificationError, match="adjoint: gradient 1 differs, the first of 1 among 2"):
        mg.compile(lambda x, y: x * y - y, verify=True)(x, y)


def test_a_gradient_through_a_maximum_that_was_taken_for_a_constant_is_refused(monkeypatch):
    from micrograd.compiler.passes import normalise

    right = normalise._with_maxima
    monkeypatch.setattr(
        normalise,
        "_with_maxima",
        lambda graph: replace(
            right(replace(graph, differentiable=np.zeros_like(graph.differentiable))),
            differentiable=graph.differentiable,
        ),
    )
    x = Value(1.5)
    with pytest.raises(VerificationError, match="adjoint: a gradient flows through a maximum of several numbers"):
        mg.compile(lambda x: mg.maximum(x * x, mg.sin(x)), verify=True)(x)


def _scanned(xs):
    return mg.scan(lambda h, x: (mg.tanh(h * 0.5 + x), h), 0.1, xs)[0]


@pytest.mark.unmeasured
@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
@pytest.mark.parametrize(
    "f",
    [
        lambda xs: xs[0] ** xs[1] + xs[2] ** 2 - 2.0 ** xs[3] / xs[4],
        lambda xs: mg.softmax(xs)[3] + mg.dot(xs, xs),
        lambda xs: sum(mg.where(x > 0.5, x * 2, mg.relu(-x)) for x in xs) * mg.maximum(xs[0], xs[1]),
        lambda xs: sum(xs[0] ** (0.1 + 0.07 * number) for number in range(40)),
        lambda xs: sum(mg.leaky_relu(x, xs[0]) - mg.minimum(x, 1.0) for x in xs),
        lambda xs: (mg.dot(xs[:12], xs[3:15]) - mg.detach(xs[1])) * mg.hypot(xs[0], -xs[1]),
        _scanned,
        lambda xs: mg.grad(mg.grad(lambda x: x**3 * mg.exp(x * xs[1])))(xs[0]),
        lambda xs: sum(sum(MODEL([a, b])) for a, b in itertools.pairwise(xs)),
    ],
)
def test_what_is_right_is_verified(f, backend):
    xs, plain = ([Value(0.1 + 0.37 * number) for number in range(16)] for _ in range(2))
    fast, slow = mg.compile(f, backend=backend, verify=True)(xs), f(plain)
    assert fast.data == pytest.approx(slow.data, rel=1e-12)
    fast.backward()
    slow.backward()
    assert [x.grad for x in xs] == pytest.approx([x.grad for x in plain], rel=1e-9)


def test_an_index_that_is_given_is_verified():
    xs, index = [Value(0.5), Value(-1.5), Value(2.5)], Value(-1.0)
    result = mg.compile(lambda xs, index: mg.take(xs, index) * mg.take(xs, index + 1), verify=True)(xs, index)
    result.backward()
    assert result.data == 1.25
    assert [x.grad for x in xs] == [2.5, 0.0, 0.5]


def test_fused_kernels_are_verified(monkeypatch):
    monkeypatch.setattr(allocate, "_LARGE", 0)  # smaller programs are not fused
    seen = []

    def f(xs):
        return sum(mg.relu(mg.tanh(-(x * x)) * 2.0 - 0.5) - x * 3.0 for x in xs)

    def looked_at(program):
        seen.extend(kernel.kind for kernel in program.kernels)
        return (
            replace(program, kernels=tuple(map(with_another_formula, program.kernels))) if seen.count(None) else program
        )

    with_pass("fuse", looked_at, f, ([0.01 * number - 3 for number in range(600)],))
    assert "fused" in seen
    seen.append(None)
    with pytest.raises(VerificationError, match=r"wrong: .* 0 differs"):
        with_pass("fuse", looked_at, f, ([0.01 * number - 3 for number in range(600)],))


def with_another_formula(kernel):
    if kernel.kind != "fused":
        return kernel
    formula = composite(lambda on, *operands: 1.0 + kernel.primitive.composite(on, *operands))
    return replace(kernel, primitive=Primitive("fused", "fused", formula, *kernel.primitive.derivatives))


def test_packs_of_a_batch_and_the_update_are_verified(monkeypatch):
    monkeypatch.setenv("MICROGRAD_VERIFY", "1")
    w, frozen = Value(0.5), Value(1.0, requires_grad=False)
    examples = [(0.1 * number, 0.3 * number) for number in range(16)]
    mg.fit(
        lambda x, y: (mg.tanh(w * x) * frozen - y) ** 2,
        examples,
        mg.optim.SGD([w], 0.1),
        epochs=1,
        compile="llvm",
        batch_size=8,
    )
    assert w.data != 0.5


def test_the_variable_of_the_environment(monkeypatch):
    from micrograd.compiler.passes import lists

    normalise = next(each for each in lists.COMMON if each.name == "normalise")
    broken = normalise._replace(make=lambda columns, request: without_a_term(normalise.make(columns, request)))
    source = Made(Source(function, Structure((([0.5, -1.5], 1), {}))))
    for value, is_verified in ("1", True), ("", False), ("0", False):
        monkeypatch.setenv("MICROGRAD_VERIFY", value)
        request = replace(backend_of("numpy").request(), passes=(*lists.COMMON[:2], broken))
        if is_verified:
            with pytest.raises(VerificationError, match="normalise: output 0 differs"):
                run_stages(source, "normalise", request)
        else:
            run_stages(source, "normalise", request)


def test_the_field_agrees_with_exact_arithmetic():
    draw = np.random.default_rng(1)
    x, y = draw.integers(0, PRIME, (2, 500), dtype=np.uint64)
    x[:4], y[:4] = [0, 1, PRIME - 1, PRIME - 1], [PRIME - 1, PRIME - 1, PRIME - 1, 1]
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    assert field.times(x, y).tolist() == [a * b % PRIME for a, b in pairs]
    assert field.plus(x, y).tolist() == [(a + b) % PRIME for a, b in pairs]
    assert field.minus(x).tolist() == [-a % PRIME for a, _ in pairs]
    assert field.inverse(x).tolist() == [pow(a, PRIME - 2, PRIME) for a, _ in pairs]
    assert field.total(x, np.zeros(500, dtype=np.int64), 2).tolist() == [sum(x.tolist()) % PRIME, 0]
    numbers = [0.0, -0.0, 1.0, -1.0, 0.375, -2.5e-308, 5e-324, 1.7e308, 0.1]
    expected = [a * pow(b, PRIME - 2, PRIME) % PRIME for a, b in map(float.as_integer_ratio, numbers)]
    assert field.element_of(numbers).tolist() == expected
    assert len({*field.element_of([np.inf, -np.inf, np.nan]).tolist()}) == 3


def test_what_is_kept_of_the_choices():
    x, y, z = (np.array([number], dtype=np.uint64) for number in (17, 4711, 99))
    largest = applied(primitives.maximum, x, applied(primitives.maximum, y, z))
    assert largest == applied(primitives.maximum, applied(primitives.maximum, z, x), y)
    assert applied(primitives.where, x, y, y) == y
    assert applied(primitives.less, x, y) != applied(primitives.less, y, x)
    assert applied(primitives.detach, x) == x
    assert isinstance(with_pass("allocate", lambda program: program).program, Program)
