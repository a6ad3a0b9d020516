"""Control flow as functions: loops and choices.

scan hands a state from iteration to iteration, and vmap runs every iteration by itself:

    def step(total, x):                              # a state and an input: the next state, and an output
        return total + x, total * x

    scan(step, 0.0, [1.0, 2.0, 3.0])                 # (6.0, [0.0, 2.0, 9.0])
    vmap(lambda x, w: w * x, (0, None))([1.0, 2.0], 3.0)       # [3.0, 6.0]

They are plain Python loops over Values. A list or an array is a sequence of iterations; a tuple or a dict holds several
sequences that are gone through side by side. What the iterations give is put together in the same way.

The compiler has another way of taking many iterations of vmap: it runs the function a few times, for all.

cond, switch and while_loop decide on numbers, as Python's own statements do.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, TypeAlias

from micrograd._support.checks import Operand, check_type, is_array, real_number, required_count
from micrograd._support.containers import array_of, base_of, remade
from micrograd.contexts.calls import observed_iterations
from micrograd.engine.recorder import ContextEntry, holding, on_top

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import ParamSpec

    Take = Callable[[int], Any]
    P = ParamSpec("P")


def scan(
    step: Callable[[Any, Any], tuple[Any, Any]],
    state: Any,
    inputs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    checkpoint: int | None = None,
) -> tuple[Any, Any]:
    """Pass a state from iteration to iteration: ``state, output = step(state, input)`` for each input.

    The gradient of a loop needs the numbers of each iteration. With ``checkpoint=k``, a compiled function keeps only
    every k-th state, and computes the iterations in between again in the backward pass. So it takes the time of one
    more run, and the memory of n / k states and k iterations instead of n. The root of n is a good k. Results and
    gradients are the same, up to rounding. If iterations are large, such as products of matrices, a compiled function
    keeps the states only, as for k = 1, without being asked.

    Args:
        step: takes the state and the input of an iteration, and returns the next state and an output, as a tuple. The
            output may be None.
        state: the first one: a number or Value, or lists, tuples, dicts and arrays of such, nested to any depth.
        inputs: a list, a range, or an array, read along its first axis; or a tuple or dict of them, of one length, of
            which step gets a tuple or dict of items. With None, step gets None, and you must give a length.
        length: the number of iterations; by default that of the inputs.
        reverse: go from the last input to the first. The outputs stay at the positions of their inputs.
        checkpoint: every how many iterations a compiled function keeps a state; None keeps what all iterations compute.
            It has no effect eagerly, where every operation is kept for ``backward()``, in exported code, in
            ``mg.to_jax``, ``mg.fit``, ``mg.vmap`` and float32, in functions that decide on numbers, and for fewer
            than two times k iterations.

    Returns:
        The last state, and a list of the outputs. Arrays make one array with one more axis, the first. Tuples and dicts
        make one tuple or dict, with the outputs of each position put together. Numbers make an array if an input is
        an array.

    Raises:
        TypeError: if step is not callable or returns no pair, an input is neither list nor array, there is neither an
            input nor a length, or length or checkpoint is no int.
        ValueError: if there is no iteration, lengths differ, the state or the output changes its structure, or
            checkpoint is not positive.

    Example:
        >>> scan(lambda total, x: (total + x, total * x), 0.0, [1.0, 2.0, 3.0])
        (6.0, [0.0, 2.0, 9.0])
        >>> from micrograd import Value
        >>> rate = Value(0.5)
        >>> last, _ = scan(lambda y, _: (y - rate * y, None), 8.0, length=3)
        >>> last.backward()
        >>> last.data, rate.grad
        (1.0, -6.0)
    """
    _check_function(step, "scan")
    sequences = _Sequences()
    take = sequences.through(inputs, 0, "inputs")
    iterations = on_top(_iterations)
    every = None if checkpoint is None else required_count(checkpoint, "checkpoint")
    in_blocks = None if every is None or iterations is None else iterations.blocks()
    if length is not None:
        rows = None if in_blocks else rows_in_use()
        given = required_count(length, "length")
        sequences.lengths["length"] = given if rows is None else len(rows.given(range(given)))
    if not sequences.lengths:
        raise TypeError("scan needs inputs to go through, or a length")
    count = sequences.length("scan")
    if not in_blocks and (other := rows_in_use()) is not None:
        other.goes_through(count)
    if iterations is not None and (found := iterations.handed_on(step, state, take, count, reverse)) is not None:
        return found
    order = range(count)[::-1] if reverse else range(count)
    if in_blocks is not None and every is not None and count >= 2 * every:
        state, outputs = in_blocks(partial(_handed_on, step), state, take, order, every)
    else:
        remember = observed_iterations(step, "scan iteration", (state, inputs))
        iteration = step if iterations is None else iterations.of(step, count)
        may_go_on = None if iterations is None else iterations.blocks_after(step)
        pairs, run_others = [], None
        for pair in _handed_on(iteration, state, take, order):
            pairs.append(pair)
            if may_go_on is not None and (run_others := may_go_on(pair[0], take, order[len(pairs) :])) is not None:
                break
        outputs = [output for _, output in pairs]
        if run_others is None:
            remember(pairs)
            state = pairs[-1][0]
        else:
            state, others = run_others(partial(_handed_on, step), pairs[-1][0], take, order[len(pairs) :], 1)
            outputs += others
    return state, _stacked(_alike(outputs[::-1] if reverse else outputs), 0, sequences.in_arrays)


def _handed_on(step: Callable[[Any, Any], Any], state: Any, take: Take, order: Iterable[int]) -> Iterator[Any]:
    """The state after each iteration, and its output."""
    form = form_of(state)
    for index in order:
        pair = step(_copied(state), take(index))
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"step must return a tuple of the next state and an output, not {pair!r:.80}")
        if form_of(pair[0]) != form:
            raise ValueError(
                f"the state must keep its structure: iteration {index} was given {state!r:.60}, "
                f"and returns {pair[0]!r:.60}"
            )
        state = pair[0]
        yield pair


def vmap(f: Callable[P, Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[P, Any]:
    """The function that runs f for every item of its arguments, and puts the results together.

    Eagerly, f runs in Python once for each item, and all operations are kept for ``backward()``, some 200 bytes each.
    So compile it: ``mg.compile(mg.vmap(f))``, or ``mg.compile`` for the whole function. Then all items run as array
    kernels; f is traced for each of a few items, or for three of many.

    Args:
        f: a function of the items.
        in_axes: along which axis to map the arguments; None passes an argument as it is. A tuple has one axis for each
            positional argument, or a tuple or dict for an argument that is one. Arrays may have any axis, nested
            lists one from 0 up. Named arguments are mapped along axis 0.
        out_axes: which axis of the result the items make; a tuple or dict if f returns one.

    Returns:
        A function of the same arguments. Its results are put together like the outputs of ``scan``.

    Raises:
        TypeError: if f is not callable; when called, if an argument is neither list nor array along an axis.
        ValueError: when called, if there is no item, lengths differ, f returns another structure than for the first
            item, or there is no such axis.

    Example:
        >>> vmap(lambda x, w: w * x, in_axes=(0, None))([1.0, 2.0, 3.0], 10.0)
        [10.0, 20.0, 30.0]
        >>> vmap(lambda point: point["x"] * point["y"])({"x": [1.0, 2.0], "y": [3.0, 4.0]})
        [3.0, 8.0]
    """
    _check_function(f, "vmap")
    return update_wrapper(partial(_mapped, f, in_axes, out_axes), f)  # no closure, so that it can be pickled if f can


def _mapped(f: Callable[..., Any], in_axes: Any, out_axes: Any, /, *arguments: Any, **named: Any) -> Any:
    axes = tuple(in_axes) if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(arguments)
    if len(axes) != len(arguments):
        raise ValueError(f"in_axes has {len(axes)} axes, but the call has {len(arguments)} positional")
    given: dict[Any, tuple[Any, Any]] = dict(enumerate(zip(arguments, axes, strict=True)))
    given |= {name: (argument, 0) for name, argument in named.items()}
    fixed = {position: argument for position, (argument, axis) in given.items() if axis is None}
    sequences = _Sequences()
    takes = {
        position: sequences.through(argument, axis, f"argument {position!r}")
        for position, (argument, axis) in given.items()
        if axis is not None
    }

    positions, names = range(len(arguments)), list(named)

    def run(items: dict[Any, Any]) -> Any:
        every = {**fixed, **items}
        return f(*[every[position] for position in positions], **{name: every[name] for name in names})

    if not sequences.lengths:
        raise ValueError("vmap needs an argument to go through: there is none whose axis is not None")
    count = sequences.length("vmap")

    def item(index: int) -> dict[Any, Any]:
        return {position: take(index) for position, take in takes.items()}

    iterations = on_top(_iterations)
    if iterations is not None and (found := iterations.at_once(run, item, count, out_axes)) is not None:
        return found
    remember = observed_iterations(run, "vmap iteration", (arguments, named))
    each = run if iterations is None else iterations.choosing(run, count)
    may_go_on = None if iterations is None else iterations.blocks_after(each)
    outputs = [] if iterations is None else iterations.mapped(each, item, count)
    iteration = each if iterations is None else iterations.of(each, count - len(outputs), keeps_all=True)
    for index in range(len(outputs), count):
        outputs.append(iteration(item(index)))
        others = range(index + 1, count)
        if may_go_on is not None and (run_others := may_go_on(_NO_STATE, item, others)) is not None:
            outputs += run_others(partial(_each, each), _NO_STATE, item, others, 1)[1]
            break
    else:
        remember(outputs)
    return _stacked(_alike(outputs), out_axes, sequences.in_arrays)


_NO_STATE = 0.0  # of iterations that hand nothing on


def _each(f: Callable[[Any], Any], state: Any, take: Take, order: Iterable[int]) -> Iterator[Any]:
    """What f returns for each item, beside the state of a loop that has none of its own."""
    return ((state, f(take(index))) for index in order)


# Choices


def cond(predicate: Any, then: Callable[..., Any], otherwise: Callable[..., Any], *operands: Any) -> Any:
    """Run one of two functions: ``then(*operands) if predicate else otherwise(*operands)``.

    Args:
        predicate: a comparison, or a number or Value, which holds if it is not 0.
        then: runs if it holds.
        otherwise: runs if it does not.
        *operands: the arguments of the function.

    Returns:
        The result of the function; gradients flow only through that one.

    Raises:
        TypeError: if then or otherwise is not callable.

    Example:
        >>> from micrograd import Value
        >>> x = Value(-3.0)
        >>> y = cond(x > 0, lambda x: x * x, lambda x: -2 * x, x)
        >>> y.backward()
        >>> y.data, x.grad
        (6.0, -2.0)
    """
    _check_function(then, "cond")
    _check_function(otherwise, "cond")
    if (iterations := on_top(_iterations)) is not None and (program := iterations.deciding(predicate)) is not None:
        return program.chosen(predicate, (then, otherwise), operands)
    return then(*operands) if predicate else otherwise(*operands)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Run one of several functions: ``branches[index](*operands)``.

    Args:
        index: an int, or a whole number or Value, from 0 to below len(branches).
        branches: the functions.
        *operands: the arguments of the function.

    Returns:
        The result of the function; gradients flow only through that one.

    Raises:
        TypeError: if a branch is not callable.
        ValueError: if the index is not whole.
        IndexError: if there is no such branch.

    Example:
        >>> switch(1, [lambda x: x, lambda x: x * x, lambda x: x**3], 5.0)
        25.0
    """
    for branch in branches:
        _check_function(branch, "switch")
    iterations = on_top(_iterations) if len(branches) > 0 else None
    if iterations is not None and (program := iterations.deciding(index)) is not None:
        return program.switched(index, branches, operands)
    number = int(index)
    if not number <= index <= number:
        raise ValueError(f"an index must be whole, not {index!r:.80}")
    if not 0 <= number < len(branches):
        raise IndexError(f"there is no branch {number}: switch was given {len(branches)}, counted from 0")
    return branches[number](*operands)


# Loops that end by a decision


def while_loop(
    condition: Callable[[Any], Any], body: Callable[[Any], Any], state: Any, limit: int | None = None
) -> Any:
    """Update a state while a condition holds: ``state = body(state)``.

    Args:
        condition: of the state: a comparison, or a number or Value, which holds if it is not 0.
        body: takes the state and returns the next one, of the same structure.
        state: the first one: a number or Value, or lists, tuples, dicts and arrays of such, nested to any depth.
        limit: how many iterations there may be; None for any number.

    Returns:
        The first state for which the condition does not hold.

    Raises:
        TypeError: if condition or body is not callable, or limit is no int.
        ValueError: if the condition still holds after that many iterations, or the state changes its structure.

    Example:
        >>> from micrograd import Value
        >>> x = Value(3.0)
        >>> y = while_loop(lambda y: y < 100, lambda y: y * x, 1.0, limit=10)
        >>> y.backward()
        >>> y.data, x.grad
        (243.0, 405.0)
    """
    _check_function(condition, "while_loop")
    _check_function(body, "while_loop")
    most = None if limit is None else required_count(limit, "limit")
    form, count = form_of(state), 0
    iterations = on_top(_iterations)
    while True:
        holds = condition(_copied(state))
        if iterations is not None and (program := iterations.deciding(holds)) is not None:
            return program.repeated(condition, body, _copied(state), None if most is None else most - count)
        if not holds:
            return state
        if count == most:
            raise ValueError(
                f"the condition still holds after {limit} iterations: raise limit=, or check the condition"
            )
        following = body(_copied(state))
        if form_of(following) != form:
            raise ValueError(
                f"the state must keep its structure: body was given {state!r:.60}, and returns {following!r:.60}"
            )
        state, count = following, count + 1


# Who runs the iterations


class Iterations(ContextEntry):
    """Another way of running a function iteration after iteration; one is in use for one thread or asyncio task."""

    def of(self, function: Callable[..., Any], count: int, keeps_all: bool = False) -> Callable[..., Any]:
        """What to call in the place of a function that is to be called count times.

        Args:
            function: the function.
            count: how often.
            keeps_all: whether the scans in it keep all states.
        """
        raise NotImplementedError

    def mapped(self, function: Callable[..., Any], item: Take, count: int) -> list[Any]:
        """What the function returns for the first items: for as many of them as run in another way, often none.

        Args:
            function: takes an item.
            item: gives the item of each iteration.
            count: how many there are.
        """
        raise NotImplementedError

    def choosing(self, function: Callable[[Any], Any], count: int) -> Callable[[Any], Any]:
        """A function of an item that leaves what it decides on numbers to a program; often itself."""
        return function

    def at_once(self, run: Callable[[Any], Any], item: Take, count: int, axis: Any) -> Any:
        """What all iterations of a vmap give, put together along an axis; None where they are run."""
        return None

    def handed_on(self, step: Callable[[Any, Any], Any], state: Any, take: Take, count: int, reverse: bool) -> Any:
        """The last state of a scan and its outputs; None where the iterations are run."""
        return None

    def blocks(self) -> Callable[..., tuple[Any, list[Any]]] | None:
        """What runs a scan where a program keeps the states between blocks only: in_blocks of decisions.py, or None."""
        raise NotImplementedError

    def blocks_after(self, step: Callable[..., Any]) -> Callable[..., Any] | None:
        """What says after an iteration of a loop whether the others run in blocks, as it decides or is large; or None.

        Args:
            step: the function.

        Returns:
            A function of the state after an iteration, of what gives items, and of the order of the iterations after
            it. If these are to run in blocks of one, it gives what runs them; see ``blocks``.
        """
        return None

    def deciding(self, number: Any) -> Any:
        """What a program decides by on a number, with methods for cond, switch and while_loop; None in Python."""
        raise NotImplementedError


_iterations: ContextVar[Iterations | None] = ContextVar("iterations", default=None)


@contextmanager
def taking(iterations: Iterations) -> Iterator[None]:
    """Let the loops inside run their iterations in another way."""
    yield from holding(_iterations, iterations)


Distance: TypeAlias = "tuple[int, tuple[int, ...]]"
Move: TypeAlias = "tuple[int, Sequence[int], Sequence[Distance]]"


class Rows(ContextEntry):
    """What stands for the rows of arrays while a function is traced for another number of them.

    Attributes:
        sums_integers: whether integers were added up that have no bounds for more rows.
        counts: whether the numbers of iterations are computed with.
        chooses: whether iterations ask for the truth of numbers.
        choosing: what selects among branches then, by their code.
        count: how many rows there are.
        needed: how many rows show what loops do, however many iterations they have; see delays.py.
    """

    sums_integers = counts = chooses = False
    count = 0
    needed: float = 0
    choosing: dict[Any, Any]

    def given(self, known: Any, of_iterations: bool = False) -> Any:
        """What stands for a range, or an array or a list of known numbers, which meets numbers that are not known.

        Args:
            known: the range, the array or the list.
            of_iterations: whether iterations of scan or vmap get its items.
        """
        raise NotImplementedError

    def numbers(self, counted: range) -> Any:
        """What stands for the numbers of iterations where these are computed with: a list."""
        raise NotImplementedError

    def is_near(self, counted: range) -> bool:
        """Whether there are about as many as rows, of which few are traced."""
        raise NotImplementedError

    def grows(self, count: int) -> bool:
        """Whether so many iterations may stand for more of them."""
        return False

    def needs(self, iterations: float, count: int) -> None:
        """Notice that so many iterations show what a loop does that has another number of them now."""
        if iterations > count:
            self.needed = max(self.needed, iterations * self.count / count)

    def goes_through(self, *counts: int) -> None:
        """Notice that a loop begins, each of whose iterations is traced by itself.

        Args:
            counts: how many iterations it has; of zip, how many each of the things has that it goes through.
        """

    def moved(self, made: int, arrays: Sequence[int], distances: Sequence[Distance]) -> None:
        """Notice an operation on arrays, which moves elements along axes.

        Args:
            made: the position of what it makes.
            arrays: the positions of its operands.
            distances: how far, and how long the axes are along which that may be.
        """

    def as_for_fewer(self, answer: bool) -> bool:
        """The answer to a question of quickness, which is the one that was given for the fewest rows."""
        raise NotImplementedError

    def goes_into_loops(self, reached: Any) -> bool:
        """Whether this stands for rows that loops in Python go through, too, in a function that reaches all this."""
        raise NotImplementedError


_rows: ContextVar[Rows | None] = ContextVar("rows", default=None)


@contextmanager
def taking_rows(rows: Rows) -> Iterator[None]:
    """Let what runs inside have other rows."""
    yield from holding(_rows, rows)


def rows_in_use() -> Rows | None:
    """What stands for the rows of arrays; None where they are what they are."""
    return on_top(_rows)


# What is gone through


def _check_function(function: object, name: str) -> None:
    check_type(callable(function), f"{name} takes a function", function)


class _Sequences:
    """What is gone through, side by side.

    Attributes:
        lengths: of each sequence, by how it is called in messages.
        in_arrays: whether one of them is an array.
    """

    def __init__(self) -> None:
        self.lengths: dict[str, int] = {}
        self.in_arrays = False

    def length(self, name: str) -> int:
        """The length that all have."""
        for path, length in self.lengths.items():
            if not length:
                raise ValueError(f"{name} of nothing: {path} has length 0, so the structure of the result is unknown")
        if len(set(self.lengths.values())) > 1:
            shown = [f"that of {path} is {length}" for path, length in self.lengths.items()]
            raise ValueError(f"{name} goes through sequences of one length, but {' and '.join(shown):.200}")
        return length

    def through(self, nested: Any, axis: Any, path: str) -> Take:
        """What gives the item of each iteration.

        Args:
            nested: what is gone through.
            axis: along which axis; None for not at all; a tuple or dict of them for a tuple or a dict.
            path: how it is called in messages.
        """
        if nested is None or axis is None:
            return lambda index: nested
        _check_axis(axis, "in_axes")
        if isinstance(nested, (tuple, dict)):
            axes = _axes_of(nested, axis, path)
            takes = [self.through(part, axes[name], f"{path}[{name!r}]") for name, part in _parts(nested).items()]
            return lambda index: remade(nested, [take(index) for take in takes])
        if not isinstance(axis, int):
            raise ValueError(f"{path} is no tuple or dict, and has one axis, not {axis!r:.80}")
        if (other := rows_in_use()) is not None:
            nested = other.given(nested, of_iterations=True)
        if is_array(nested):
            return self._through_array(nested, axis, path)
        if not isinstance(nested, (list, range)):
            raise TypeError(
                f"{path} must be a list or an array, with an item for each iteration, not {type(nested).__name__}: "
                f"{nested!r:.80}. If all iterations use it, close over it, or pass in_axes=None to vmap"
            )
        if axis < 0:
            raise ValueError(f"{path} is a list, whose axes are counted from 0: there is no axis {axis}")
        if axis == 0:
            self.lengths[path] = len(nested)
            return lambda index: _copied(nested[index])
        rows = [self.through(row, axis - 1, f"{path}[{number}]") for number, row in enumerate(nested)]
        return lambda index: [take(index) for take in rows]

    def _through_array(self, array: Any, axis: int, path: str) -> Take:
        import numpy as np

        if hasattr(array, "mask"):
            raise TypeError(f"{path} is a {type(array).__name__} with a mask: fill it first")
        if not -array.ndim <= axis < array.ndim:
            raise ValueError(f"{path} is an array of shape {array.shape}: there is no axis {axis}")
        self.lengths[path] = array.shape[axis]
        self.in_arrays = True
        if array.ndim == 1:
            numbers = array.tolist()  # Python's numbers, and not NumPy's
            return lambda index: numbers[index]
        rows = np.moveaxis(array, axis, 0)
        return lambda index: rows[index].copy()


def _check_axis(axis: Any, name: str) -> None:
    if isinstance(axis, bool) or not isinstance(axis, (int, tuple, dict)):
        raise TypeError(f"{name} must be an int, or a tuple or dict of them, not {axis!r:.80}")


def _axes_of(container: Any, axis: Any, path: str) -> dict[Any, Any]:
    """The axis of each part of a tuple or a dict."""
    names = _parts(container).keys()
    if isinstance(axis, int):
        return dict.fromkeys(names, axis)
    axes = _parts(axis)
    if isinstance(axis, dict) is not isinstance(container, dict) or axes.keys() != names:
        raise ValueError(f"the axes {axis!r:.80} do not fit {path}, whose parts are {', '.join(map(repr, names)):.80}")
    return axes


def _parts(container: Any) -> dict[Any, Any]:
    """The parts of a tuple or a list by their numbers, or of a dict by their keys."""
    items = base_of(container).items(container) if isinstance(container, dict) else enumerate(container)
    return dict(items)


# What the iterations give


def _copied(nested: Any) -> Any:
    """The same items in containers of their own: what an iteration changes in place, it changes for itself only."""
    if isinstance(nested, (list, tuple, dict)):
        return remade(nested, list(map(_copied, _parts(nested).values())))
    return nested.copy() if is_array(nested) else nested


def form_of(nested: Any) -> Any:
    """What stays the same from iteration to iteration: the classes of containers, their lengths, keys and shapes."""
    if isinstance(nested, Operand) or real_number(nested) is not None:
        return "a number"
    if isinstance(nested, (list, tuple, dict)):
        return type(nested), {name: form_of(part) for name, part in _parts(nested).items()}
    return ("an array", nested.shape) if is_array(nested) else type(nested)


def in_order_of(nested: Any, like: Any) -> Any:
    """The same, with the keys of dicts in the order of another structure, if the forms of both are the same."""
    return _in_order_of(nested, like) if form_of(nested) == form_of(like) else nested


def _in_order_of(nested: Any, like: Any) -> Any:
    if isinstance(nested, (list, tuple, dict)):
        parts = _parts(nested)
        return remade(like, [_in_order_of(parts[name], part) for name, part in _parts(like).items()])
    return nested


def _alike(outputs: list[Any]) -> list[Any]:
    """The outputs of all iterations, which must have one structure."""
    form = form_of(outputs[0])
    for index, output in enumerate(outputs):
        if form_of(output) != form:
            raise ValueError(
                f"every iteration must return the same structure: iteration 0 returns {outputs[0]!r:.60}, "
                f"and iteration {index} {output!r:.60}"
            )
    return outputs


def _stacked(outputs: list[Any], axis: Any, in_arrays: bool) -> Any:
    """The outputs put together along an axis; numbers in an array or a list."""
    _check_axis(axis, "out_axes")
    first = outputs[0]
    if isinstance(first, (tuple, dict)):
        axes, rows = _axes_of(first, axis, "what f returns"), list(map(_parts, outputs))
        return remade(first, [_stacked([row[name] for row in rows], axes[name], in_arrays) for name in _parts(first)])
    if not isinstance(axis, int):
        raise ValueError(f"what f returns is no tuple or dict, and has one axis, not {axis!r:.80}")
    if first is None:
        return None
    if is_array(first):
        import numpy as np

        if not -first.ndim - 1 <= axis <= first.ndim:
            raise ValueError(f"f returns an array of shape {first.shape}: there is no axis {axis} beside its own")
        return np.stack(outputs, axis)
    if axis == 0:
        return array_of((len(outputs),))(outputs) if in_arrays and form_of(first) == "a number" else outputs
    if not isinstance(first, list) or axis < 0:
        raise ValueError(f"f returns {first!r:.60}: there is no axis {axis}")
    return [_stacked(list(column), axis - 1, in_arrays) for column in zip(*outputs, strict=True)]
