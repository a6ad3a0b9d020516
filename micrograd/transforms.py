"""From a function to its gradient, its Jacobian or its Hessian, as functions of numbers.

    slope = grad(lambda x: x**3)       # slope(2.0) is 12.0
    curvature = grad(slope)            # curvature(2.0) is 12.0 as well: 6 * x

Each call makes fresh Values out of the arguments, runs f on them, and differentiates. What comes out behaves like the
result of f. Where f reaches Values that require a gradient, among its arguments, in a closure, or inputs of a transform
around it as slope does inside curvature, it is a graph on these, to be differentiated again:

    w = Value(5.0)
    loss = grad(lambda x: w * x**3)(2.0) ** 2       # (3 * w * 2**2)**2, a Value
    loss.backward()                                 # w.grad is 1440.0

Where f reaches none, or under no_grad, it is plain numbers.

fixed_point and root iterate on plain numbers, and differentiate the equation that is solved: no iteration is stored.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import (
    are_all,
    check_class,
    check_type,
    is_array,
    is_unknown,
    is_value,
    real_number,
    required_count,
    required_number,
)
from micrograd._support.containers import flatten, matching
from micrograd.contexts.no_grad import differentiating, no_grad
from micrograd.engine import primitives
from micrograd.engine.differentiation import (
    INPUT_OF_A_TRANSFORM,
    Differentiation,
    check_no_gradient_is_lost,
    differentiated,
    is_recording,
    reaches,
    refuse_constant,
    running,
)
from micrograd.engine.higher_order import adjoints
from micrograd.engine.higher_order import jacobian as jacobian_of
from micrograd.engine.higher_order import sparse_entries as sparse_entries_of
from micrograd.engine.higher_order import tangents as tangents_of
from micrograd.engine.recorder import refusing_floats
from micrograd.engine.tracer import tracer_on_top
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import ParamSpec

    P = ParamSpec("P")


def gradient(output: Value, inputs: Any, *, create_graph: bool = False) -> Any:
    """The gradient of an output with respect to inputs, returned; no ``grad`` is touched.

    Args:
        output: what to differentiate.
        inputs: a Value, or a container or array of them, anywhere in the graph of the output.
        create_graph: whether the gradients are Values, to be differentiated again. Otherwise they are plain numbers
            without a gradient.

    Returns:
        The gradients in the shape of the inputs; 0 for what the output does not depend on, and for constants.

    Raises:
        TypeError: if output or an input is not a Value.
        ValueError: if an operation has no derivative; with create_graph, if it has no second one, or if an input
            requires no gradient. Without create_graph, also inside a function that a transform differentiates, if
            output depends on its inputs: to get constants there, use ``no_grad``.

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
    if not create_graph:
        check_no_gradient_is_lost(output, "mg.gradient")
    elif constants := [value for value in wanted if not value.requires_grad]:
        refuse_constant(repr(constants[0]))
    return rebuild(_gradients(output, wanted, create_graph))


def _gradients(output: Value, wanted: list[Value], create_graph: bool) -> list[Any]:
    start, zero = (Value(1.0, requires_grad=False), Value(0.0, requires_grad=False)) if create_graph else (1.0, 0.0)
    found = adjoints(output, start, create_graph, wanted) if output.requires_grad else {}
    return [found.get(value, zero) for value in wanted]


def grad(f: Callable[P, Any], argnums: int | tuple[int, ...] = 0) -> Callable[P, Any]:
    """The function that returns the gradient of f.

    Args:
        f: a function that returns one number. Its arguments are numbers or containers of them: lists,
            tuples, dicts, NumPy arrays.
        argnums: which arguments to differentiate by, by position; a tuple of them gives a tuple.

    Returns:
        A function of the same arguments, whose result has the shape of the argument. If f uses Values that require a
        gradient, as arguments or in a closure, its numbers are Values, to be differentiated again. Otherwise, and
        under ``no_grad``, they are plain numbers.

    Raises:
        TypeError: if f is no function; when called, if f returns no number, or an argument holds other things.
            For a function of several results, see ``jacobian``.

    Example:
        >>> grad(lambda x: x**3)(2.0)
        12.0
        >>> w = Value(5.0)
        >>> slope = grad(lambda x: w * x**3)(2.0)
        >>> slope.backward()
        >>> slope.data, w.grad
        (60.0, 12.0)
        >>> grad(lambda p: p["a"] * p["b"][0])({"a": 2.0, "b": [5.0]})
        {'a': 5.0, 'b': [2.0]}
    """
    check_differentiable(f)
    return _transformed("grad", f, partial(_gradient_at, f, argnums))


def value_and_grad(f: Callable[P, Any], argnums: int | tuple[int, ...] = 0) -> Callable[P, tuple[Any, Any]]:
    """The function that returns the value of f and its gradient, as a pair; see grad.

    Example:
        >>> value_and_grad(lambda x: x * x)(3.0)
        (9.0, 6.0)
    """
    check_differentiable(f)
    return _transformed("value_and_grad", f, partial(_value_and_gradient_at, f, argnums))


def _transformed(name: str, f: Callable[..., Any], made: partial[Any]) -> Any:
    """What a transform returns, with a name: a partial function, not a closure, so that it can be pickled if f can."""
    made.__name__ = f"{name}({getattr(f, '__name__', type(f).__name__)})"  # type: ignore[attr-defined]  # as functions
    made.differentiated = f  # type: ignore[attr-defined]  # it is called with the same arguments
    return made


def _value_and_gradient_at(f: Callable[..., Any], argnums: Any, /, *arguments: Any, **settings: Any) -> tuple[Any, Any]:
    if (found := _by_tracer("grad", f, arguments, settings, argnums)) is not None:
        value, gradient = found
        return value, gradient
    inputs = Inputs(arguments, argnums)
    output = inputs.run(f, settings)
    if not isinstance(output, Value) and real_number(output) is None:
        several = isinstance(output, (list, tuple, dict)) or is_array(output)
        instead = ": mg.jacobian takes those that return several" if several else ""
        instead = ": end it with return, and the number" if output is None else instead
        name = type(output).__name__
        raise TypeError(f"a function to differentiate must return one number, not {name}{instead}")
    inputs.connect([output])
    return inputs.returned(output), inputs.joined(inputs.gradients_of(output))


def _by_tracer(name: str, f: Any, arguments: tuple[Any, ...], settings: dict[str, Any], by: Any) -> Any:
    """What a transform gives where a tracer does not need the derivatives to tell what they are; else None."""
    tracer = tracer_on_top()
    return None if tracer is None else tracer.transformed(name, f, arguments, settings, by)


def _gradient_at(f: Callable[..., Any], argnums: Any, /, *arguments: Any, **settings: Any) -> Any:
    return _value_and_gradient_at(f, argnums, *arguments, **settings)[1]


def jacobian(f: Callable[P, Any], argnums: int | tuple[int, ...] = 0) -> Callable[P, Any]:
    """The function that returns the derivatives of every output of f by every input.

    Each output takes one backward pass. Compiled, one forward pass with the tangents of all inputs is used instead if
    there are fewer inputs than outputs, and the outputs share so many operations that it is cheaper.

    Args:
        f: a function that returns numbers in lists, tuples, dicts or arrays, or one number.
        argnums: which arguments to differentiate by; see grad.

    Returns:
        A function whose result has the shape of f's output, and in each position the shape of the
        argument; for arrays, one array of the shape of the output followed by that of the argument.

    Example:
        >>> jacobian(lambda p: [p[0] * p[1], p[0]])([2.0, 3.0])
        [[3.0, 2.0], [1.0, 0.0]]
        >>> jacobian(lambda x: {"square": x * x, "half": x / 2})(3.0)
        {'square': 6.0, 'half': 0.5}
    """
    return _jacobian(f, argnums, Inputs.rows)


def _jacobian(f: Callable[..., Any], argnums: int | tuple[int, ...], rows_of: Callable[..., Any]) -> Any:
    """The function that gives the Jacobian of f, whose rows are computed from inputs and outputs."""
    check_differentiable(f)
    return _transformed("jacobian", f, partial(_jacobian_at, f, argnums, rows_of))


def _jacobian_at(
    f: Callable[..., Any], argnums: Any, rows_of: Callable[..., Any], /, *arguments: Any, **settings: Any
) -> Any:
    if (found := _by_tracer("jacobian", f, arguments, settings, argnums)) is not None:
        return found
    inputs = Inputs(arguments, argnums)
    outputs, rebuild = flatten(inputs.run(f, settings), OUTPUT)
    inputs.connect(outputs)
    rows = [inputs.parts(row) for row in rows_of(inputs, outputs)]
    return inputs.joined([rebuild([row[part] for row in rows]) for part in range(inputs.count)])


def hessian(f: Callable[P, Any], argnums: int = 0) -> Callable[P, Any]:
    """The function that returns the second derivatives of f: the Jacobian of its gradient, forward over reverse.

    Backpropagation gives the gradient as a graph, through which one forward pass takes the tangents of all inputs. What
    does not depend on an input has no tangent, so it costs nothing.

    Example:
        >>> hessian(lambda p: p[0] ** 2 * p[1])([2.0, 3.0])
        [[6.0, 4.0], [4.0, 0.0]]
    """
    check_one_argument(argnums, "hessian")
    return _jacobian(grad(f, argnums), argnums, Inputs.rows_by_tangents)


def hvp(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function that returns the Hessian of f times a vector, without computing the Hessian.

    Returns:
        A function of an argument and a vector of the same shape.

    Example:
        >>> hvp(lambda p: p[0] ** 2 * p[1])([2.0, 3.0], [1.0, 0.0])
        [6.0, 4.0]
    """
    check_differentiable(f)
    return _transformed("hvp", f, partial(_hessian_times, f))


def _hessian_times(f: Callable[..., Any], argument: Any, vector: Any = None) -> Any:
    weights = matching(vector, argument, "the vector")

    def slope(point: Any) -> Any:
        slopes, _ = flatten(grad(f)(point), "the gradient")
        return sum(weight * slope for weight, slope in zip(weights, slopes, strict=True))

    return grad(slope)(argument)


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of f, and how fast it changes in a direction: its Jacobian times a vector.

    It takes one forward pass for any number of results of f.

    Args:
        f: a function that returns numbers in lists, tuples, dicts or arrays, or one number.
        primals: a list or tuple of the arguments of f, each a number or a container of numbers.
        tangents: how fast each of them changes: as many, of the same shapes. Inputs whose tangent is the plain number
            0 are not differentiated.

    Returns:
        The value of f, and its tangent, of the same shape. They are Values, to be differentiated again, if f uses
        Values as for ``grad``, or if primals or tangents have some.

    Raises:
        TypeError: if f is no function, primals or tangents are no list or tuple, or hold other things than numbers.
        ValueError: if there are no primals, or tangents do not have their shapes.

    Example:
        >>> jvp(lambda x, y: [x * y, x**2], (2.0, 3.0), (1.0, 0.0))
        ([6.0, 4.0], [3.0, 4.0])
    """
    check_differentiable(f)
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (list, tuple)):
            raise TypeError(f"{what} must be a list or a tuple, one for each argument, not {type(given).__name__}")
    if len(primals) != len(tangents):
        raise ValueError(f"jvp needs a tangent for each primal, not {len(tangents)} for {len(primals)}")
    if (found := _by_tracer("jvp", f, tuple(primals), {}, tangents)) is not None:
        value, tangent = found
        return value, tangent
    inputs = Inputs(_required_arguments(primals, "jvp"), tuple(range(len(primals))))
    pairs = zip(primals, tangents, strict=True)
    rates = [rate for primal, tangent in pairs for rate in matching(tangent, primal, "a tangent", "its primal")]
    rates = [rate if isinstance(rate, Value) else real_number(rate) for rate in rates]
    inputs.look_at(rates)
    # What is compiled inside gives gradients only, and so f runs as it was written.
    outputs, rebuild = flatten(inputs.run(f, {}, as_written=True), OUTPUT)
    inputs.connect(outputs)
    positions = [position for position, output in enumerate(outputs) if isinstance(output, Value)]
    slopes: list[Any] = [0.0] * len(outputs)
    with differentiating():
        direction: dict[Any, Any] = dict(zip(inputs.fresh, rates, strict=True))
        (made,) = tangents_of([outputs[position] for position in positions], [direction], inputs.in_graphs)
    for position, tangent in zip(positions, inputs.constants_or_graphs(made), strict=True):
        slopes[position] = tangent
    return rebuild([inputs.returned(output) for output in outputs]), rebuild(slopes)


def vjp(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """The value of f, and the function that gives a vector times its Jacobian.

    Args:
        f: a function that returns numbers in lists, tuples, dicts or arrays, or one number.
        *primals: the arguments of f, each a number or a container of numbers.

    Returns:
        The value of f, and a function of a cotangent: a weight for each number that f returned, in the shape of the
        value. It returns a tuple with the gradient of the weighted sum by each argument, in the shape of the argument.
        They are Values, to be differentiated again, if f uses Values as for ``grad``, or if the cotangent has some.

    Raises:
        TypeError: if f is no function, or primals hold other things than numbers.
        ValueError: if there are no primals; when called, if the cotangent does not have the shape of the value.

    Example:
        >>> value, pull_back = vjp(lambda x, y: {"product": x * y, "square": x**2}, 2.0, 3.0)
        >>> value
        {'product': 6.0, 'square': 4.0}
        >>> pull_back({"product": 1.0, "square": 10.0})
        (43.0, 2.0)
    """
    check_differentiable(f)
    if (found := _by_tracer("vjp", f, primals, {}, tuple(range(len(primals))))) is not None:
        value, function = found
        return value, function
    inputs = Inputs(_required_arguments(primals, "vjp"), tuple(range(len(primals))))
    outputs, rebuild = flatten(inputs.run(f, {}), OUTPUT)
    inputs.connect(outputs)
    value, is_recorded = rebuild([inputs.returned(output) for output in outputs]), is_recording()

    def pull_back(cotangent: Any) -> tuple[Any, ...]:
        """The gradient by each argument of the sum of what was returned, each number times its weight."""
        weights = matching(cotangent, value, "the cotangent", "the value")
        pulled = inputs.again()
        pulled.look_at(weights)
        if is_recorded:
            pulled.connect(outputs)
        weighted = [
            (weight, output)
            for weight, output in zip(weights, outputs, strict=True)
            if isinstance(output, Value) and (isinstance(weight, Value) or weight)
        ]
        with differentiating():
            terms = [weight * output for weight, output in weighted]
            total = sum(terms[1:], terms[0]) if terms else 0.0
        return tuple(pulled.gradients_of(total))

    return value, pull_back


OUTPUT = "the output of a function to differentiate"


def _required_arguments(primals: Sequence[Any], name: str) -> tuple[Any, ...]:
    if not primals:
        raise ValueError(f"{name} needs at least one primal, an argument to differentiate by")
    return tuple(primals)


class Inputs:
    """The arguments of one call, with fresh Values in place of the numbers to differentiate by.

    Args:
        arguments: of the call.
        argnums: which of them to differentiate by.
        as_numbers: whether the results are plain numbers, whatever is given.

    Attributes:
        count: how many arguments there are to differentiate by.
        fresh: these Values.
        of_values: whether Values were given, so that the results are Values.
        is_connected: whether gradients flow from the results to Values around the call, so that they are graphs.
    """

    def __init__(self, arguments: tuple[Any, ...], argnums: int | tuple[int, ...], as_numbers: bool = False) -> None:
        chosen = argnums if isinstance(argnums, tuple) else (argnums,)
        for number in chosen:
            if isinstance(number, bool) or not isinstance(number, int):
                raise TypeError(f"argnums must be an int or a tuple of ints, not {argnums!r:.80}")
            if not -len(arguments) <= number < len(arguments):
                count = f"{len(arguments)} argument{'s' * (len(arguments) != 1)}"
                raise ValueError(f"argnums asks for argument {number}, but the call has {count}, counted from 0")
        if len({number % len(arguments) for number in chosen}) < len(chosen):
            raise ValueError(f"argnums {argnums} has one argument twice")
        self._arguments = list(arguments)
        self._run = Differentiation()
        self._parts: list[tuple[int, Callable[[list[Any]], Any]]] = []  # how many numbers, and what they are put into
        self._is_single = not isinstance(argnums, tuple)
        self.count = len(chosen)
        self.fresh: list[Value] = []
        self.of_values = self.is_connected = False
        for number in chosen:
            scalars, rebuild = flatten(arguments[number], f"argument {number}")
            if not as_numbers:  # else connect() sees by the results whether these can be numbers
                self.look_at(scalars)
            fresh = _fresh(scalars, self._run)
            self._arguments[number] = rebuild(list(fresh))
            self._parts.append((len(fresh), rebuild))
            self.fresh += fresh

    def again(self) -> Inputs:
        """The same inputs, for another result, which is asked for later."""
        other = copy(self)
        other._run = Differentiation()
        other.is_connected = other._run.is_recorded and self.is_connected
        return other

    def look_at(self, scalars: list[Any]) -> None:
        """Note which kinds of numbers are given."""
        if values := [scalar for scalar in scalars if is_value(scalar)]:
            self.of_values = True
            self.is_connected = self.is_connected or (
                self._run.is_recorded and any(is_unknown(value) or value.requires_grad for value in values)
            )

    def run(self, f: Callable[..., Any], settings: dict[str, Any], as_written: bool = False) -> Any:
        """What f gives for the fresh Values; as_written says whether compiled functions inside run as written."""
        reason = "the float of a Value has no gradient: use mg.exp, not math.exp, or v.data on purpose"
        as_written = as_written or self.is_connected
        with differentiated(self._run, self.fresh, as_written), refusing_floats(reason), differentiating():
            return f(*self._arguments, **settings)

    def connect(self, outputs: list[Any]) -> None:
        """Find out whether what f gave depends on other Values that require a gradient than the fresh ones."""
        if self._run.is_recorded and not self.is_connected:
            values = outputs if are_all(Value, outputs) else list(filter(is_value, outputs))
            self.is_connected = reaches(values, [None, *running()])

    @property
    def in_graphs(self) -> bool:
        """Whether derivatives are computed as graphs."""
        return self.is_connected or self.of_values

    def gradients_of(self, output: Any) -> list[Any]:
        """The gradients of an output, for each argument differentiated by, in its shape."""
        (row,) = self.rows([output])
        return self.parts(row)

    def rows(self, outputs: list[Any]) -> list[list[Any]]:
        """For each output its gradients by all inputs."""
        with differentiating():
            found = jacobian_of(outputs, self.fresh, self.in_graphs)
        zeros = map(self._zero, outputs)
        return [[row.get(value, zero) for value in self.fresh] for row, zero in zip(found, zeros, strict=True)]

    def rows_by_tangents(self, outputs: list[Any]) -> list[list[Any]]:
        """For each output its derivatives by all inputs, from tangents: each input is a direction of its own."""
        values = [output for output in outputs if isinstance(output, Value)]
        with differentiating():
            columns = tangents_of(values, [{value: 1.0} for value in self.fresh], self.in_graphs)
        found = iter(zip(*columns, strict=True))
        rows: list[Any] = [
            next(found, ()) if isinstance(output, Value) else [0.0] * len(self.fresh) for output in outputs
        ]
        if not self.in_graphs:
            return rows
        zeros = map(self._zero, outputs)
        return [
            [slope if isinstance(slope, Value) else zero for slope in row]
            for row, zero in zip(rows, zeros, strict=True)
        ]

    def _zero(self, output: Any) -> Any:
        """The derivative of an output by what it does not depend on."""
        return Value(0.0, requires_grad=False) if self.in_graphs and is_value(output) else 0.0

    def parts(self, slopes: list[Any]) -> list[Any]:
        """Derivatives by all inputs, for each argument differentiated by, in its shape."""
        every = iter(self.constants_or_graphs(slopes))
        return [rebuild(list(islice(every, count))) for count, rebuild in self._parts]

    def sparse_entries(self, outputs: list[Any], symmetric: bool) -> tuple[Sequence[int], Sequence[int], Sequence[Any]]:
        """The gradients of outputs by those of the inputs that each depends on: plain numbers.

        Args:
            outputs: which depend on the inputs.
            symmetric: whether they are the gradients of one number.

        Returns:
            The row and the column of each, and the gradients, in any order.
        """
        with differentiating():
            return sparse_entries_of(outputs, self.fresh, symmetric)

    def joined(self, parts: list[Any]) -> Any:
        """One result for one argument, a tuple of them for several."""
        return parts[0] if self._is_single else tuple(parts)

    def constants_or_graphs(self, derivatives: list[Any]) -> list[Any]:
        """Derivatives as the caller expects them: constants where no gradient may flow through them."""
        if self.is_connected or not self.of_values:
            return derivatives
        return [primitives.detach(slope) if isinstance(slope, Value) else slope for slope in derivatives]

    def returned(self, output: Any) -> Any:
        """The value as the caller expects it: a float, or a Value where f reaches Values."""
        if not isinstance(output, Value):
            return real_number(output)
        if self.is_connected:
            return output
        return primitives.detach(output) if self.of_values else _number(output)


def check_one_argument(argnums: object, name: str) -> None:
    """Raise a TypeError for what is no number of an argument; the name is that of the transform."""
    if isinstance(argnums, bool) or not isinstance(argnums, int):
        raise TypeError(f"argnums of {name} must be an int, not {argnums!r:.80}; it gives a function to be called")


def check_differentiable(f: object) -> None:
    """Raise a TypeError for what is no function."""
    check_type(callable(f), "what is differentiated must be a function", f)


def _number(output: Value) -> Any:
    return output.data if (tracer := tracer_on_top()) is None else tracer.number_of(output)


def _fresh(scalars: list[Any], run: Differentiation) -> list[Value]:
    # Of a Value in the arguments f gets a copy, and is differentiated with respect to that. Where f uses the Value
    # itself as well, from a closure, it is a constant to this derivative.
    for scalar in () if are_all(float, scalars) else scalars:
        if isinstance(scalar, Value):
            check_class(scalar, "a function that is differentiated is given other Values in place of its arguments")
    with differentiating():
        tracer = tracer_on_top()
        if tracer is not None and (copies := tracer.copies(scalars, run)) is not None:
            return copies
        return list(map(_leaf, scalars))


def _leaf(scalar: Any) -> Value:
    if isinstance(scalar, Value) and scalar.requires_grad:
        return primitives.identity(scalar)
    leaf = Value(scalar.data if isinstance(scalar, Value) else scalar)
    leaf._x = INPUT_OF_A_TRANSFORM
    return leaf


# Solutions of equations


def fixed_point(f: Callable[[Any], Any], start: Any, tolerance: float = 1e-12, limit: int = 1000) -> Any:
    """The state x with x = f(x), found by applying f repeatedly.

    Gradients flow to the Values that f reads. They follow from the equation, so iterations are not stored. The same
    holds for derivatives of any order by transforms, and up to the third by backward(create_graph=True).

    Args:
        f: takes a state and returns the next one, of the same structure.
        start: the first state: a number, or lists, tuples, dicts and arrays of such, nested to any depth. No gradient
            flows to it.
        tolerance: stop when no number changes by more than this, relative to its size or to 1.
        limit: the maximum number of iterations.

    Returns:
        The state.

    Raises:
        TypeError: if f is not callable, or the tolerance or the limit is of the wrong type.
        ValueError: if the numbers still change after that many iterations, f returns another structure,
            or the equation does not determine the state.

    Example:
        >>> from micrograd import Value, sqrt
        >>> a = Value(6.0)
        >>> x = fixed_point(lambda x: sqrt(a + x), 1.0)     # x * x = a + x
        >>> x.backward()
        >>> round(x.data, 9), round(a.grad, 9)
        (3.0, 0.2)
    """
    check_differentiable(f)
    equation = _Equation(f, start, "fixed_point")

    def difference(numbers: list[Any]) -> list[Any]:
        return [after - before for after, before in zip(equation.applied(numbers), numbers, strict=True)]

    return equation.solved(equation.applied, difference, tolerance, limit)


def root(f: Callable[[Any], Any], start: Any, tolerance: float = 1e-12, limit: int = 100) -> Any:
    """The state x with f(x) = 0, found by Newton's method.

    Gradients flow to the Values that f reads. They follow from the equation, so iterations are not stored. The same
    holds for derivatives of any order by transforms, and up to the third by backward(create_graph=True).

    Args:
        f: takes a state and returns as many numbers, in the same structure.
        start: the first state: a number, or lists, tuples, dicts and arrays of such, nested to any depth. No gradient
            flows to it.
        tolerance: stop when no number changes by more than this, relative to its size or to 1.
        limit: the maximum number of iterations.

    Returns:
        The state.

    Raises:
        TypeError: if f is not callable, or the tolerance or the limit is of the wrong type.
        ValueError: if the numbers still change after that many iterations, f returns another structure,
            or its Jacobian is singular.

    Example:
        >>> from micrograd import Value
        >>> a = Value(8.0)
        >>> x = root(lambda x: x**3 - a, 1.0)
        >>> x.backward()
        >>> round(x.data, 9), round(a.grad, 9)
        (2.0, 0.083333333)
    """
    check_differentiable(f)
    equation = _Equation(f, start, "root")
    return equation.solved(lambda numbers: _newton(equation.applied, numbers), equation.applied, tolerance, limit)


class _Equation:
    """A function of a state, as one of the numbers in it."""

    def __init__(self, f: Callable[[Any], Any], start: Any, name: str) -> None:
        self._f, self._start, self._name = f, start, name
        self._numbers, self._rebuilt = flatten(start, "the start")

    def applied(self, numbers: list[Any]) -> list[Any]:
        """The numbers that the function gives."""
        return matching(self._f(self._rebuilt(list(numbers))), self._start, f"what {self._name}'s function returns")

    def solved(self, step: Any, residual: Any, tolerance: float, limit: int) -> Any:
        """The state that is left by steps on plain numbers, with the derivatives of: the residual is 0."""
        tolerance, most = required_number(tolerance, "the tolerance"), required_count(limit, "limit")
        numbers = [primitives.detach(number) for number in self._numbers]
        with no_grad():
            numbers = self._converged(step, numbers, tolerance, most)
        order = len(running()) + 3  # of the derivatives that may be asked for
        for _ in range(
            order.bit_length()
        ):  # from the solution, each step of Newton's method doubles how many are right
            numbers = _newton(residual, numbers)
        return self._rebuilt(numbers)

    def _converged(self, step: Any, numbers: list[Any], tolerance: float, most: int) -> list[Any]:
        for _ in range(most):
            before, numbers = numbers, [primitives.detach(number) for number in step(numbers)]
            if all(
                abs(new - old) <= tolerance * primitives.maximum(abs(new), 1.0)
                for new, old in zip(numbers, before, strict=True)
            ):
                return numbers
        raise ValueError(f"{self._name} has not converged after {most} iterations: start nearer, or allow more of them")


def _newton(residual: Callable[[list[Any]], list[Any]], numbers: list[Any]) -> list[Any]:
    steps = _eliminated(jacobian(residual)(numbers), residual(numbers))
    return [number - step for number, step in zip(numbers, steps, strict=True)]


def _eliminated(rows: list[list[Any]], right: list[Any]) -> list[Any]:
    """The solution of linear equations, by Gauss's elimination with the largest pivot of each column."""
    left = [[*row, number] for row, number in zip(rows, right, strict=True)]
    for column in range(len(left)):
        best = max(range(column, len(left)), key=lambda row: abs(left[row][column]))
        left[column], left[best] = left[best], left[column]
        pivot = left[column]
        if not abs(pivot[column]) > 0:
            raise ValueError("the equation does not determine its solution there: its Jacobian is singular")
        for number, row in enumerate(left):
            if number != column:
                factor = row[column] / pivot[column]
                left[number] = [x - factor * y for x, y in zip(row, pivot, strict=True)]
    return [row[-1] / row[column] for column, row in enumerate(left)]
