"""Other code: what a function runs in the place of its own while it is traced, for indices and loops over many rows.

``table[i]`` of a list, with an index that is an argument, becomes what ``mg.take(table, i)`` writes.

A list asks its index for an int, and gives the element that is there. A symbol has no int, and Python has no hook that
could give another element. So where a trace is refused at such a place, the function runs once more, and has other code
meanwhile: that of its own source, in which each ``table[i]`` is a call. The call gives what ``table[i]`` gives, unless
the index is a symbol, and the table a list or a tuple of numbers of one kind, or of such rows, which are equally long.

In the same code, what a loop goes through and what a comprehension makes are given to calls, which give the same,
unless few of many rows are traced; see plain_loops.py and calling/of_rows.py.

The other code has the names, lines and columns of the first. Where there is no source, or it is not that of the code
any more, the index is refused.
"""

from __future__ import annotations

import ast
import linecache
from contextvars import ContextVar
from functools import lru_cache
from operator import attrgetter, is_, is_not
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from micrograd._support.locks import new_lock
from micrograd.compiler.guards.closed_over import ClosedOver
from micrograd.compiler.guards.code_names import NAMES_OF_ASKS
from micrograd.compiler.guards.refusals import TraceError, refused_indices
from micrograd.compiler.tracing import branches, growing, orders, plain_loops, promotion
from micrograd.compiler.tracing.outline import OutlineTape
from micrograd.compiler.tracing.symbols import BoolSymbol, IntSymbol, Symbol
from micrograd.engine.commit import commit, setting
from micrograd.engine.copying import user_attributes
from micrograd.engine.tracer import tracer_on_top
from micrograd.engine.value import Value
from micrograd.loops import rows_in_use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import FunctionType


Traced = TypeVar("Traced")

_CONTAINERS = (list, tuple)
_NO_INDICES = "arrays used as indices must be of integer (or boolean) type"  # as NumPy says of symbols
_LOCK = new_lock()  # one trace at a time lets functions have other code
_MARK = "table[i], as micrograd traces it"  # the constant that becomes what is called
_PART = "_what_branches_do"
_PARAMETER = "_what_a_comprehension_goes_through"
_MAY_ASK = (ast.Call, ast.IfExp, ast.BoolOp, ast.Compare)
_STAYS = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.GeneratorExp)
# What looks at the frame that calls it
_OF_FRAMES = {*("super", "locals", "vars", "eval", "exec", "dir", "__class__"), *("_getframe", "currentframe", "stack")}
_MAKE_ARRAYS = ("array", "asarray", "stack")
_COMPUTED = [[one, other, type(None)] for one in (ast.Name, ast.BinOp) for other in (ast.Name, ast.BinOp)]
_TAKES_ROWS = ("range", "zip", "enumerate")
# The rows that were taken, each with its elements
_rows: ContextVar[list[tuple[list[Any], list[Any]]]] = ContextVar("rows")


def with_indices(run: Callable[[], Traced], reached: ClosedOver, goes_in: bool = False) -> Traced:
    """The result of a trace, which runs again with other code where an index was refused.

    Args:
        run: the trace.
        reached: what the function can reach, as it was before the trace.
        goes_in: whether all functions have other code from the start, for loops over many rows.

    Raises:
        TraceError: if a row that was taken from a table is changed in place.
    """
    other_rows = rows_in_use()
    goes_in = goes_in or (other_rows is not None and other_rows.goes_into_loops(reached))
    rows: list[tuple[list[Any], list[Any]]] = []
    token = _rows.set(rows)
    traced: Any = None
    error: Exception | None = None
    try:
        traced, error, is_refused = (None, None, True) if goes_in else _attempt(run)
        if is_refused:
            with _LOCK:
                if not goes_in:
                    reached.put_back()
                others = _other_code_of(reached.functions, goes_in) if goes_in or reached.is_current() else []
                if goes_in or others:
                    rows.clear()
                    traced, error = _attempt_with(others, run)
    finally:
        _rows.reset(token)
    if error is not None:
        raise error
    if any(len(row) != len(before) or any(map(is_not, row, before)) for row, before in rows):
        raise TraceError(
            "a row that was taken from a table is changed in place: a compiled function takes a copy of it, so nothing "
            "would be changed in the table. Change a copy, and return what is needed of it"
        )
    return traced


def _attempt(run: Callable[[], Traced]) -> tuple[Any, Exception | None, bool]:
    """The result of a trace, its error, and whether it refused an index."""
    with refused_indices() as refused:
        try:
            return run(), None, bool(refused)
        except Exception as error:  # it is raised again, unless the trace runs again
            raised = getattr(error, "raised", error)  # or an UndecidedError has it
            is_numpys = type(raised) is IndexError and raised.args[:1] == (_NO_INDICES,)
            return None, error, bool(refused) or is_numpys


def watched(roots: list[tuple[str, Any]]) -> ClosedOver:
    """What the roots can reach; meanwhile no function has other code."""
    with _LOCK:
        return ClosedOver(roots)


def _taken(table: Any, index: Any) -> Any:
    """What ``table[index]`` gives."""
    if (rows := rows_in_use()) is not None:
        table = rows.given(table)
    if isinstance(table, np.ndarray) and orders.is_unknown_index(index):
        found = orders.picked(table, index)
        return table[index] if found is None else found
    tracer: Any = tracer_on_top()
    if isinstance(tracer, OutlineTape) and type(table) in _CONTAINERS and table and type(index) is Symbol:
        return tracer.take(table, index)
    if type(table) not in _CONTAINERS or not issubclass(type(index), (IntSymbol, BoolSymbol)):
        return table[index]
    return table[index] if not table or _kind(table) is None else _element(table, index)


def _part(table: Any, begin: Any, end: Any) -> Any:
    """What ``table[begin:end]`` gives."""
    return _taken(table, slice(begin, end))


def _kind(item: Any) -> Any:
    """The kind of an element of a table: that of a number, or class and length of a row; None for anything else."""
    if type(item) in _CONTAINERS:
        kinds = set(map(_kind, item))
        return (type(item), len(item), *kinds) if len(kinds) == 1 and None not in kinds else None
    if isinstance(item, Value) and not user_attributes(item):
        return promotion.kind_of_number(item)
    return type(item) if type(item) in (float, int) else None


def _element(table: Sequence[Any], index: Any) -> Any:
    """The element of a table."""
    first = table[0]
    if type(first) in _CONTAINERS:
        row = [_element(column, index) for column in zip(*table, strict=True)]
        if type(first) is tuple:
            return tuple(row)
        _rows.get().append((row, [*row]))
        return row
    tracer: Any = tracer_on_top()
    found = tracer.take(table, index)
    return found if _kind(first) is not Value else found._tape._symbol(found._position, orders.Taken)


# The other code


class _Calls(ast.NodeTransformer):
    """Makes calls of each ``table[i]`` that is read, but in annotations, of loops, and of what asks for classes.

    Args:
        appended_to: the names of lists that code appends to.
        selects: whether what may ask in loops is given to calls, too.
    """

    def __init__(self, appended_to: set[Any], selects: bool) -> None:
        self._appended_to, self._selects = appended_to, selects
        self._loops = 0  # around what is visited, in the function that it is in
        self._stay: set[str] | None = None  # see _that_stay; None outside of functions, too

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """The call, where it is an element that is read, or a part whose two ends are computed."""
        self.generic_visit(node)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        ends = [node.slice.lower, node.slice.upper, node.slice.step] if isinstance(node.slice, ast.Slice) else []
        if isinstance(node.ctx, ast.Load) and list(map(type, ends)) in _COMPUTED:
            return _call("part", node, [node.value, *ends[:2]])
        if not isinstance(node.ctx, ast.Load) or any(isinstance(part, ast.Slice) for part in parts):
            return node
        return _call("taken", node, [node.value, node.slice])

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """An assignment; if it makes a list that code appends to, of one that takes note of it."""
        self.generic_visit(node)
        if len(node.targets) == 1:
            (target,), value = node.targets, node.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                value.elts = list(map(self._growing, map(_name_of, target.elts), value.elts))
            else:
                node.value = self._growing(_name_of(target), value)
        node.value = self._chosen(node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """An assignment that adds."""
        self.generic_visit(node)
        node.value = self._chosen(node.value)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """What is appended to a list."""
        self.generic_visit(node)
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "append":
            call.args = list(map(self._chosen, call.args))
        return node

    def visit_If(self, node: ast.If) -> Any:
        """A statement with branches; in a loop, a function of the variables that these assign to."""
        names = _assigned([node]) if self._loops and self._stay is not None else {}
        if names and not (self._stay or set()).isdisjoint(names):
            names = {}
        loops, self._loops = self._loops, 0 if names else self._loops  # one call is enough for all that is inside
        self.generic_visit(node)
        self._loops = loops
        return _branched(node, names) if names else node

    def _chosen(self, value: ast.expr) -> ast.expr:
        """The call for what may ask for the truth of numbers, in a loop."""
        kinds = set(map(type, ast.walk(value)))
        if not self._loops or self._stay is None or kinds.isdisjoint(_MAY_ASK) or not kinds.isdisjoint(_STAYS):
            return value
        parameters = ast.arguments([], [ast.arg(_PARAMETER)], None, [], [], None, [ast.Constant(None)])
        return _call("chosen", value, [ast.Lambda(parameters, value)])

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        """A dict, with such lists."""
        self.generic_visit(node)
        keys = [each.value if isinstance(each, ast.Constant) else None for each in node.keys]
        node.values = list(map(self._growing, keys, node.values))
        return node

    def _growing(self, name: Any, value: ast.expr) -> ast.expr:
        """What gets a name."""
        is_list = isinstance(value, ast.List) or (isinstance(value, ast.Call) and _name_of(value.func) == "list")
        return _call("growing", value, [value]) if is_list and name in self._appended_to else value

    def visit_For(self, node: ast.For) -> ast.AST:
        """The loop, through what a call gives."""
        node.iter = _through(self.visit(node.iter))
        self._loops += 1
        node.body = self._each(_without_continue(node.body))
        self._loops -= 1
        node.orelse = self._each(node.orelse)
        return node

    def _each(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        found = [self.visit(each) for each in statements]
        return [each for one in found for each in (one if isinstance(one, list) else [one])]

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        """A call for a comprehension."""
        self._visit_elements(node)
        return _listed(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        """A generator, whose elements may ask."""
        self._visit_elements(node)
        return node

    def _visit_elements(self, node: Any) -> None:
        self.generic_visit(node)
        self._loops += 1
        node.elt = self._chosen(node.elt)
        self._loops -= 1

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call; of sum, or with a generator, another one."""
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if isinstance(node.func, ast.Attribute) and node.func.attr in _MAKE_ARRAYS:
            return _call("in_array", node, [node.func, *node.args], node.keywords)
        if name in NAMES_OF_ASKS:
            return _call("asked", node, [node.func, *node.args], node.keywords)
        is_taken = name == "sum"
        if name == "max":  # of numbers that are read: see largest.py
            return node
        if len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp):
            node.args, is_taken = [_listed(node.args[0])], True
        return _call("summed", node, [node.func, *node.args], node.keywords) if is_taken else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """A comparison; of who two objects are, as a call."""
        self.generic_visit(node)
        if len(node.ops) > 1 or not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return node
        if isinstance(node.comparators[0], ast.Constant):
            return node
        name = "is_" if isinstance(node.ops[0], ast.Is) else "is_not"
        return _call(name, node, [node.left, *node.comparators])

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """A parameter as it is."""
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """What is assigned, without the annotation."""
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: Any) -> ast.AST:
        """A function, without the annotation of its result."""
        returns, node.returns = node.returns, None
        self._visit_scope(node, _that_stay(node) if self._selects else None)
        node.returns = returns
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  # ast calls it so

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """A class, whose body has variables of its own."""
        self._visit_scope(node, None)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """A function of one expression."""
        self._visit_scope(node, _that_stay(node) if self._selects else None)
        return node

    def _visit_scope(self, node: ast.AST, stay: set[str] | None) -> None:
        """Visit what has variables of its own, in no loop at first."""
        around, self._loops, self._stay = (self._loops, self._stay), 0, stay
        self.generic_visit(node)
        self._loops, self._stay = around


def _that_stay(function: Any) -> set[str] | None:
    """The variables of a function that others can see; None if it asks for its frame, where calls would be seen."""
    names: set[str] = set()
    for node in ast.walk(function):
        if _name_of(node) in _OF_FRAMES:
            return None
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            names.update(node.names)
        elif node is not function and isinstance(node, _INNER):
            names.update(part.id for part in ast.walk(node) if isinstance(part, ast.Name))
    return names


def _without_continue(body: list[ast.stmt]) -> list[ast.stmt]:
    """The body of a loop: with ``if not x: rest`` for ``if x: continue`` before the rest."""
    for number, node in enumerate(body):
        if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ast.Continue):
            ends = ast.copy_location(ast.Pass(), node.body[-1])
            node.body[-1], node.orelse = ends, _without_continue(body[number + 1 :]) or [ends]
            return body[: number + 1]
    return body


def _branched(node: ast.If, assigned: dict[str, bool]) -> list[ast.stmt]:
    """The statements in the place of one with branches, which assigns to these variables, always or not."""
    names = sorted(assigned, key=lambda name: (not assigned[name], name))
    variables = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
    parameters = ast.arguments([], [ast.arg(each) for each in (_PARAMETER, *names)], None, [], [], None, [])
    part = ast.FunctionDef(_PART, parameters, [node, ast.Return(variables)], [], None, None)
    vars(part).update(type_params=[])  # since Python 3.12
    given: list[Any] = [sum(assigned.values()), *names]
    call = _call("branched", node.test, [ast.Name(_PART, ast.Load()), *[ast.Constant(each) for each in given]])
    made: list[ast.stmt] = [part, ast.Assign([ast.Tuple([ast.Name(n, ast.Store()) for n in names], ast.Store())], call)]
    for name in names:
        missing = ast.Attribute(ast.Constant(_MARK), "missing", ast.Load())
        is_missing = ast.Compare(ast.Name(name, ast.Load()), [ast.Is()], [missing])
        made.append(ast.If(is_missing, [ast.Delete([ast.Name(name, ast.Del())])], []))
    return [ast.fix_missing_locations(ast.copy_location(each, node.test)) for each in made]


def _assigned(statements: list[ast.stmt]) -> dict[str, bool]:
    """The variables that statements assign to, and whether they always do; none if they do anything else."""
    found: dict[str, bool] = {}
    for node in statements:
        targets: list[Any] = []
        if isinstance(node, ast.If):
            first, second = _assigned(node.body), _assigned(node.orelse)
            does_more = [{*map(type, side)} - {ast.Pass} for side in (node.body, node.orelse)]
            if (does_more[0] and not first) or (does_more[1] and not second):
                return {}
            both = {name: first.get(name, False) and second.get(name, False) for name in {**first, **second}}
            found.update((name, found.get(name, False) or always) for name, always in both.items())
        elif isinstance(node, ast.Assign):
            targets = [part for each in node.targets for part in getattr(each, "elts", [each])]
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
        elif not isinstance(node, ast.Pass):
            return {}
        if any(not isinstance(each, ast.Name) for each in targets):
            return {}
        if not {type(each) for each in ast.walk(node)}.isdisjoint(_STAYS):
            return {}
        found.update((each.id, True) for each in targets)
    return {} if any(name.startswith("__") for name in found) else found


def _name_of(node: Any) -> Any:
    """The last name in an expression: of a variable, of an attribute, or a constant key; None where there is none."""
    if isinstance(node, ast.Subscript):
        node = node.slice
    return getattr(node, "id", getattr(node, "attr", getattr(node, "value", None)))


def _appended_to(tree: ast.AST) -> set[Any]:
    """The names of what code appends to."""
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    found = {_name_of(each.value) for each in calls if isinstance(each, ast.Attribute) and each.attr == "append"}
    return found - {None}


def _listed(node: Any) -> ast.expr:
    """The call in the place of a comprehension, which becomes a function of what it iterates over, if it is simple."""
    (first, *others), parts = node.generators, set(map(type, ast.walk(node)))
    if others or first.ifs or first.is_async or not parts.isdisjoint((ast.Await, ast.Yield, ast.NamedExpr)):
        return node
    rows, first.iter = _through(first.iter), ast.Name(_PARAMETER, ast.Load())
    parameters = ast.arguments([], [ast.arg(_PARAMETER)], None, [], [], None, [])
    return _call("listed", node, [ast.Lambda(parameters, node), rows])


def _through(node: Any) -> ast.expr:
    """The call that gives what a loop iterates over."""
    function = node.func if isinstance(node, ast.Call) else None
    if not isinstance(function, ast.Name) or function.id not in _TAKES_ROWS:
        return _call("through", node, [ast.Constant(None), node])
    return _call("through", node, [function, *map(_inside, node.args)], node.keywords)


def _inside(node: ast.expr) -> Any:
    """An argument of zip or enumerate, which may be such a call itself."""
    return _through(node) if isinstance(node, ast.Call) else node


def _call(name: str, node: Any, arguments: list[Any], named: Iterable[ast.keyword] = ()) -> ast.expr:
    """A call of a function of the mark, in the place of a node."""
    marked = ast.Attribute(ast.Constant(_MARK), name, ast.Load())
    for part in (marked, marked.value):  # on the first line: else Python says that the call is on the last one
        part.lineno = part.end_lineno = node.lineno
        part.col_offset = part.end_col_offset = node.col_offset
    return ast.fix_missing_locations(ast.copy_location(ast.Call(marked, arguments, [*named]), node))


def _is(one: Any, other: Any) -> Any:
    """Whether two objects are one."""
    return plain_loops.asked(is_, one, other)


def _is_not(one: Any, other: Any) -> Any:
    """Whether they are two."""
    return plain_loops.asked(is_not, one, other)


class _Mark:
    """The functions that the other code calls."""

    taken, part, through = staticmethod(_taken), staticmethod(_part), staticmethod(plain_loops.through)
    listed, summed = staticmethod(plain_loops.listed), staticmethod(plain_loops.summed)
    chosen, branched, missing = staticmethod(branches.chosen), staticmethod(branches.branched), branches.MISSING
    growing, in_array = staticmethod(growing.growing), staticmethod(growing.in_array)
    asked, is_, is_not = staticmethod(plain_loops.asked), staticmethod(_is), staticmethod(_is_not)


def _other_code_of(functions: Iterable[FunctionType], selects: bool) -> list[tuple[FunctionType, CodeType, CodeType]]:
    """The functions that can have other code, each with its own code and the other one."""
    codes = [(each, each.__code__, _other_code(each.__code__, each.__globals__, selects)) for each in functions]
    return [(function, code, other) for function, code, other in codes if other is not None]


def _attempt_with(others: list[tuple[FunctionType, CodeType, CodeType]], run: Callable[[], Any]) -> Any:
    """What _attempt gives while functions have other code, in all threads; in any case they get their own code back."""
    functions, codes, changed = zip(*others, strict=True) if others else ((), (), ())
    undo = setting(functions, "__code__", codes)
    try:
        commit(setting(functions, "__code__", changed))
        return _attempt(run)[:2]
    finally:
        commit(undo)


def _other_code(code: CodeType, variables: dict[str, Any], selects: bool) -> CodeType | None:
    """The other code for some code; None where there is no source, or it is not the source of this code."""
    source = "".join(linecache.getlines(code.co_filename, variables))
    other = _other_codes(source, code.co_filename, selects).get(_text(code))
    return None if other is None else _marked(other)


@lru_cache(16)
def _other_codes(source: str, name: str, selects: bool) -> dict[Any, CodeType]:
    """The other code for all code in a source, by the text of the first."""
    try:
        before = compile(source, name, "exec", dont_inherit=True)
        tree = ast.parse(source)
        after = compile(_Calls(_appended_to(tree), selects).visit(tree), name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):  # of another language, say
        return {}
    pairs, found = [(before, after)], {}
    for one, other in pairs:
        found[_text(one)] = other
        pairs += zip(_nested(one), _nested(other), strict=True)
    return found


def _nested(code: CodeType) -> list[CodeType]:
    """The code objects in a code object, without the functions around comprehensions."""
    nested = [each for each in code.co_consts if isinstance(each, CodeType)]
    return [part for each in nested for part in (_nested(each) if each.co_varnames[:1] == (_PARAMETER,) else [each])]


_names = attrgetter("co_code", "co_name", "co_firstlineno", "co_names", "co_varnames", "co_freevars", "co_cellvars")


def _text(code: CodeType) -> tuple[Any, ...]:
    """A key of what code does, without what the interpreter has cached in it."""
    constants = (_text(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts)
    return (*_names(code), *constants)


def _marked(code: CodeType) -> CodeType:
    """The code with _Mark in the place of the text that marks it."""
    constants = (
        _Mark if each == _MARK else _marked(each) if isinstance(each, CodeType) else each for each in code.co_consts
    )
    return code.replace(co_consts=tuple(constants))
