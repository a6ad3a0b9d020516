"""From a function to its gradient, its Jacobian or its Hessian, as functions of numbers.

    slope = grad(lambda x: x**3)       # slope(2.0) is 12.0
    curvature = grad(slope)            # curvature(2.0) is 12.0 as well: 6 * x

Each call makes fresh Values out of the arguments, runs f on them, and differentiates. Called inside
another transformed function, as slope is inside curvature, it gives graphs, to be differentiated again.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import check_class, is_array, real_number
from micrograd._support.containers import flatten, matching
from micrograd.contexts.no_grad import differentiating
from micrograd.engine import primitives
from micrograd.engine.higher_order import adjoints
from micrograd.engine.higher_order import tangents as tangents_of
from micrograd.engine.recorder import Layer, holding, on_top, refusing_floats
from micrograd.engine.tracer import tracer_on_top
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class _Transform(Layer):
    """A function that is run to be differentiated; graphs says whether its gradients are graphs."""

    def __init__(self, graphs: bool) -> None:
        self.graphs = graphs


# Whether a transformed function is being run by another one.
_nested: ContextVar[_Transform | None] = ContextVar("nested", default=None)


def gradient(output: Value, inputs: Any, *, create_graph: bool = False) -> Any:
    """The gradient of an output with respect to inputs, returned; no ``grad`` is touched.

    Args:
        output: what to differentiate.
        inputs: a Value, or a container or array of them, anywhere in the graph of the output.
        create_graph: whether the gradients are Values, to be differentiated again.

    Returns:
        The gradients in the shape of the inputs; 0 for what the output does not depend on.

    Raises:
        TypeError: if output or an input is not a Value.
        ValueError: if an operation has no derivative, or none that can be differentiated again.

    Example:
        >>> x = Value(2.0)
        >>> slope = gradient(x**3, x, create_graph=True)
        >>> slope.data, gradient(slope, x), x.grad
        (12.0, 12.0, 0.0)
    """
    wanted, rebuild = flatten(inputs, "the inputs")
    for value in (output, *wanted):
        if not isinstance(value, Value):
            raise TypeError(f"gradient takes Values, not {type(value).__name__}: {value!r:.80}")
    start, zero = (Value(1.0, requires_grad=False), Value(0.0, requires_grad=False)) if create_graph else (1.0, 0.0)
    found = adjoints(output, start, create_graph, wanted) if output.requires_grad else {}
    results: list[Any] = [found.get(value, zero) for value in wanted]
    return rebuild(results)


def grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that gives the gradient of f.

    Args:
        f: a function that returns one number. Its arguments are numbers or containers of them: lists,
            tuples, dicts, NumPy arrays.
        argnums: which arguments to differentiate by, by position; a tuple of them gives a tuple.

    Returns:
        A function of the same arguments, whose result has the shape of the argument.

    Raises:
        TypeError: for what is no function; when called, if f returns no number or an argument holds
            something else. Of a function that returns several numbers there is a ``jacobian``.

    Example:
        >>> grad(lambda x: x**3)(2.0)
        12.0
        >>> grad(lambda p: p["a"] * p["b"][0])({"a": 2.0, "b": [5.0]})
        {'a': 5.0, 'b': [2.0]}
    """
    both = value_and_grad(f, argnums)
    return lambda *arguments, **settings: both(*arguments, **settings)[1]


def value_and_grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that gives the value of f and its gradient, as a pair; see grad.

    Example:
        >>> value_and_grad(lambda x: x * x)(3.0)
        (9.0, 6.0)
    """
    _check_function(f)

    def both(*arguments: Any, **settings: Any) -> tuple[Any, Any]:
        inputs = _Inputs(arguments, argnums)
        output = _run(f, inputs, settings, inputs.create_graph)
        if not isinstance(output, Value) and real_number(output) is None:
            several = isinstance(output, (list, tuple, dict)) or is_array(output)
            instead = ": mg.jacobian takes those that return several" if several else ""
            name = type(output).__name__
            raise TypeError(f"a function to differentiate must return one number, not {name}{instead}")
        return inputs.plain(output), inputs.joined(inputs.gradients_of(output, inputs.create_graph))

    return both


def jacobian(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that gives the derivatives of every output of f by every input.

    Args:
        f: a function that returns numbers in lists, tuples, dicts or arrays, or one number.
        argnums: which arguments to differentiate by; see grad.

    Returns:
        A function whose result has the shape of f's output, and in each place the shape of the
        argument; for arrays, one array of the shape of the output followed by that of the argument.

    Example:
        >>> jacobian(lambda p: [p[0] * p[1], p[0]])([2.0, 3.0])
        [[3.0, 2.0], [1.0, 0.0]]
        >>> jacobian(lambda x: {"square": x * x, "half": x / 2})(3.0)
        {'square': 6.0, 'half': 0.5}
    """
    _check_function(f)

    def derivatives(*arguments: Any, **settings: Any) -> Any:
        inputs = _Inputs(arguments, argnums)
        outputs, rebuild = flatten(_run(f, inputs, settings, inputs.create_graph), _OUTPUT)
        rows = [inputs.gradients_of(output, inputs.create_graph) for output in outputs]
        return inputs.joined([rebuild([row[part] for row in rows]) for part in range(len(inputs.parts))])

    return derivatives


def hessian(f: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """The function that gives the second derivatives of f: the Jacobian of its gradient.

    Example:
        >>> hessian(lambda p: p[0] ** 2 * p[1])([2.0, 3.0])
        [[6.0, 4.0], [4.0, 0.0]]
    """
    if isinstance(argnums, bool) or not isinstance(argnums, int):
        raise TypeError(f"argnums of hessian must be an int, not {argnums!r:.80}; it gives a function to be called")
    return jacobian(grad(f, argnums), argnums)


def hvp(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function that gives the Hessian of f times a vector, without making the Hessian.

    Returns:
        A function of an argument and a vector of the same shape.

    Example:
        >>> hvp(lambda p: p[0] ** 2 * p[1])([2.0, 3.0], [1.0, 0.0])
        [6.0, 4.0]
    """
    _check_function(f)

    def product(argument: Any, vector: Any) -> Any:
        weights = matching(vector, argument, "the vector")

        def slope(point: Any) -> Any:
            slopes, _ = flatten(grad(f)(point), "the gradient")
            return sum(weight * slope for weight, slope in zip(weights, slopes, strict=True))

        return grad(slope)(argument)

    return product


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of f, and how fast it changes in a direction: its Jacobian times a vector.

    It takes one pass forward through what f computed, however many numbers f returns.

    Args:
        f: a function that returns numbers in lists, tuples, dicts or arrays, or one number.
        primals: a list or tuple of the arguments of f, each a number or a container of numbers.
        tangents: how fast each of them changes: as many, of the same shapes. By what has the plain number 0 here, f
            need not be differentiable.

    Returns:
        The value of f, and its tangent, of the same shape. Values in the arguments make them graphs, to be
        differentiated again.

    Raises:
        TypeError: if f is no function, primals or tangents are no list or tuple, or there is something else than
            numbers.
        ValueError: if there are no primals, or tangents do not have their shapes.

    Example:
        >>> jvp(lambda x, y: [x * y, x**2], (2.0, 3.0), (1.0, 0.0))
        ([6.0, 4.0], [3.0, 4.0])
    """
    _check_function(f)
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (list, tuple)):
            raise TypeError(f"{what} must be a list or a tuple, one for each argument, not {type(given).__name__}")
    if len(primals) != len(tangents):
        raise ValueError(f"jvp needs a tangent for each primal, not {len(tangents)} for {len(primals)}")
    inputs = _Inputs(_required_arguments(primals, "jvp"), tuple(range(len(primals))))
    pairs = zip(primals, tangents, strict=True)
    rates = [rate for primal, tangent in pairs for rate in matching(tangent, primal, "a tangent", "its primal")]
    rates = [rate if isinstance(rate, Value) else real_number(rate) for rate in rates]
    inputs.create_graph = inputs.create_graph or any(map(_is_value, rates))
    # What is compiled inside gives gradients only, and so f runs as it was written.
    outputs, rebuild = flatten(_run(f, inputs, {}, graphs=True), _OUTPUT)
    fresh = [value for part, _ in inputs.parts for value in part]
    places = [place for place, output in enumerate(outputs) if isinstance(output, Value)]
    found: list[Any] = [0.0] * len(outputs)
    with differentiating():
        made = tangents_of(
            [outputs[place] for place in places], dict(zip(fresh, rates, strict=True)), inputs.create_graph
        )
    for place, tangent in zip(places, made, strict=True):
        found[place] = tangent
    return rebuild([inputs.plain(output) for output in outputs]), rebuild(found)


def vjp(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """The value of f, and the function that gives a vector times its Jacobian.

    Args:
        f: a function that returns numbers in lists, tuples, dicts or arrays, or one number.
        *primals: the arguments of f, each a number or a container of numbers.

    Returns:
        The value of f, and a function of a cotangent: a weight for each number that f returned, in the shape of the
        value. It gives a tuple with the gradient of the weighted sum by each argument, in the shape of the argument.
        Values in the arguments or in the cotangent make them graphs, to be differentiated again.

    Raises:
        TypeError: if f is no function, or there is something else than numbers.
        ValueError: if there are no primals; when called, if the cotangent does not have the shape of the value.

    Example:
        >>> value, pull_back = vjp(lambda x, y: {"product": x * y, "square": x**2}, 2.0, 3.0)
        >>> value
        {'product': 6.0, 'square': 4.0}
        >>> pull_back({"product": 1.0, "square": 10.0})
        (43.0, 2.0)
    """
    _check_function(f)
    inputs = _Inputs(_required_arguments(primals, "vjp"), tuple(range(len(primals))))
    outputs, rebuild = flatten(_run(f, inputs, {}, inputs.create_graph), _OUTPUT)
    value = rebuild([inputs.plain(output) for output in outputs])

    def pull_back(cotangent: Any) -> tuple[Any, ...]:
        """The gradient by each argument of the sum of what was returned, each number times its weight."""
        weights = matching(cotangent, value, "the cotangent", "the value")
        graph = inputs.create_graph or on_top(_nested) is not None or any(map(_is_value, weights))
        with differentiating():
            terms = [
                weight * output
                for weight, output in zip(weights, outputs, strict=True)
                if isinstance(output, Value) and (isinstance(weight, Value) or weight)
            ]
            total = sum(terms[1:], terms[0]) if terms else 0.0
        return tuple(inputs.gradients_of(total, graph))

    return value, pull_back


_OUTPUT = "the output of a function to differentiate"


def _required_arguments(primals: Sequence[Any], name: str) -> tuple[Any, ...]:
    if not primals:
        raise ValueError(f"{name} needs at least one primal, an argument to differentiate by")
    return tuple(primals)


class _Inputs:
    """The arguments of one call, with fresh Values in place of the numbers to differentiate by."""

    def __init__(self, arguments: tuple[Any, ...], argnums: int | tuple[int, ...]) -> None:
        chosen = argnums if isinstance(argnums, tuple) else (argnums,)
        for number in chosen:
            if isinstance(number, bool) or not isinstance(number, int):
                raise TypeError(f"argnums must be an int or a tuple of ints, not {argnums!r:.80}")
            if not -len(arguments) <= number < len(arguments):
                raise ValueError(f"argnums has {number}, but there are {len(arguments)} arguments")
        if len({number % len(arguments) for number in chosen}) < len(chosen):
            raise ValueError(f"argnums {argnums} has one argument twice")
        self.arguments = list(arguments)
        self.parts: list[tuple[list[Value], Callable[[list[Any]], Any]]] = []
        # Who gives Values can differentiate the result: then it is a graph.
        self.create_graph = on_top(_nested) is not None
        for number in chosen:
            scalars, rebuild = flatten(arguments[number], f"argument {number}")
            self.create_graph = self.create_graph or any(map(_is_value, scalars))
            fresh = [_fresh(scalar) for scalar in scalars]
            self.arguments[number] = rebuild(list(fresh))
            self.parts.append((fresh, rebuild))
        self.single = not isinstance(argnums, tuple)

    def gradients_of(self, output: Any, create_graph: bool) -> list[Any]:
        """The gradients of an output, for each argument differentiated by, in its shape."""
        if not isinstance(output, Value):
            return [rebuild([0.0] * len(fresh)) for fresh, rebuild in self.parts]
        with differentiating():
            found = gradient(output, [fresh for fresh, _ in self.parts], create_graph=create_graph)
        return [rebuild(slopes) for slopes, (_, rebuild) in zip(found, self.parts, strict=True)]

    def joined(self, parts: list[Any]) -> Any:
        """One result for one argument, a tuple of them for several."""
        return parts[0] if self.single else tuple(parts)

    def plain(self, output: Any) -> Any:
        """The value as the caller expects it: a float, or a Value where graphs are wanted."""
        if isinstance(output, Value):
            return output if self.create_graph else _number(output)
        return real_number(output)


def _check_function(f: object) -> None:
    if not callable(f):
        raise TypeError(f"what is differentiated must be a function, not {type(f).__name__}: {f!r:.80}")


def graphs_are_wanted() -> bool:
    """Whether what runs is differentiated by a transform that differentiates its gradients again."""
    layer = on_top(_nested)
    return layer is not None and layer.graphs


def _is_value(scalar: Any) -> bool:
    return isinstance(scalar, Value) and not isinstance(scalar, (float, int))  # as unknown plain numbers are


def _number(output: Value) -> Any:
    return output.data if (tracer := tracer_on_top()) is None else tracer.number_of(output)


def _fresh(scalar: Any) -> Value:
    # Of a Value in the arguments f gets a copy, and is differentiated with respect to that. Where f uses the Value
    # itself as well, from a closure, it is a constant.
    if isinstance(scalar, Value):
        check_class(scalar, "a function that is differentiated is given other Values in place of its arguments")
    with differentiating():
        tracer = tracer_on_top()
        if tracer is not None and (copied := tracer.copied(scalar)) is not None:
            return copied
        if not isinstance(scalar, Value):
            return Value(scalar)
        return primitives.identity(scalar) if scalar.requires_grad else Value(scalar.data)


def _run(f: Callable[..., Any], inputs: _Inputs, settings: dict[str, Any], graphs: bool) -> Any:
    reason = "the float of a Value has no gradient: use mg.exp, not math.exp, or v.data on purpose"
    with _nesting(graphs), refusing_floats(reason), differentiating():
        return f(*inputs.arguments, **settings)


@contextmanager
def _nesting(graphs: bool) -> Iterator[None]:
    yield from holding(_nested, _Transform(graphs))
