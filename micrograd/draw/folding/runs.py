"""Which run of which part of the program made each Value: calls of functions and modules, and blocks.

What a call gave remembers the call, and the call knows what went in (see calls.py in contexts/). So it made what lies
between, but for what earlier calls made. The calls inside of it are over before it is: they come first, and are then
taken whole. A block is remembered by every Value that was made in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.contexts.calls import Call, calls_of

if TYPE_CHECKING:
    from micrograd.engine.value import Value


class Run:
    """One run of a part of the program.

    Attributes:
        name: of the part.
        key: what is the same for all runs of one part.
        of: the function or the module that ran; None for a block.
        start, end: when it began, and when it was over.
        given: the list that a neuron was called with.
        outputs: the Values that came out, where they are known.
        parent: the innermost run around it.
        kind: of its box.
    """

    def __init__(self, call: Call, key: object) -> None:
        self.name, self.of, inputs, self.start, self.end, self.given = call
        self.key, self.inputs = key, frozenset(inputs)
        self.outputs: list[Value] = []
        self.parent: Run | None = None
        self.kind = "run"
        self._beyond: list[Value] = []  # what it was made of, that others made

    def take(self, taken: dict[Value, Run]) -> None:
        """Take what this run made; what was taken before are the runs that were over before this one."""
        seen: set[Value] = set()
        stack = self.outputs[::-1]
        while stack:
            node = stack.pop()
            if node in seen or node.is_leaf:
                continue
            seen.add(node)
            inner = taken.get(node)
            while inner is not None and inner.parent is not None:
                inner = inner.parent
            if id(node) in self.inputs or (inner is not None and inner.start < self.start):
                self._beyond.append(node)
            elif inner is None:
                taken[node] = self
                stack += node._operands()
            elif inner is not self:  # else it is of a run inside, which was taken already
                inner.parent = self
                stack += inner._beyond


def runs_of(nodes: list[Value]) -> dict[Value, Run]:
    """The innermost run that made each Value that one made; leaves are made by none.

    Args:
        nodes: the Values, each after its operands.

    Example:
        >>> import micrograd as mg
        >>> shares = mg.softmax([mg.Value(1.0), mg.Value(2.0)])
        >>> [run.name for run in set(runs_of(mg.topological_order(shares[0])).values())]
        ['softmax']
    """
    runs: dict[float, Run] = {}
    for node in nodes:
        for call in calls_of(node):
            if call.end not in runs:
                runs[call.end] = Run(call, (call.name, id(call.of)))
            runs[call.end].outputs.append(node)
    taken: dict[Value, Run] = {}
    for run in sorted(runs.values(), key=lambda run: run.end):
        run.take(taken)
    if any(node._scope is not None for node in nodes):
        _put_into_blocks(nodes, list(runs.values()), taken)
    return taken


def _put_into_blocks(nodes: list[Value], calls: list[Run], taken: dict[Value, Run]) -> None:
    """Put Values and calls into the blocks that they were made in, and blocks into each other and into calls."""
    blocks: dict[Any, Run] = {}

    def run_of(block: Any) -> Run:
        if block not in blocks:
            blocks[block] = Run(Call(block.name, None, (), block.start, block.end), ("block", block.name))
            blocks[block].kind = block.kind
            if block.below is not None:
                blocks[block].parent = run_of(block.below)
        return blocks[block]

    def around(node: Value, start: float) -> Run | None:
        """The innermost block around a Value that had begun by then."""
        block = node._scope
        while block is not None and block.start > start:
            block = block.below
        return None if block is None else run_of(block)

    for call in calls:
        block = around(call.outputs[0], call.start)
        if block is not None and (call.parent is None or call.parent.start < block.start):
            call.parent = block
    for node in nodes:
        if node.is_leaf or (block := around(node, 1 << 62)) is None:
            continue
        call_run = taken.get(node)
        if call_run is None or call_run.start < block.start:
            taken[node] = block
            while block is not None and call_run is not None and block.start > call_run.start:
                if block.parent is None or block.parent.start < call_run.start:
                    block.parent = call_run
                    break
                block = block.parent
