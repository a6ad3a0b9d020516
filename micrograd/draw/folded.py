"""The picture of a large graph: what repeats is one group, as on the pages of explore.

A closed box shows its number, or its numbers as a strip of colour, and a matrix of parameters as a heat map. Of boxes
that are the same part of the program one is drawn, and how many there are. Plain numbers stand in their operations.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from micrograd.draw.array_steps import opened_arrays
from micrograd.draw.card import gradient_row, kind_of, note_on_gradients, number_row, tooltip_of
from micrograd.draw.folding.boxes import Box, about
from micrograd.draw.opening import MOST_ITEMS, Opening, rows_of_grid
from micrograd.draw.strip import heat_map, strip
from micrograd.draw.style import EDGE, GREY, INK, NODE, PALE, graph_style, mixed
from micrograd.draw.text import label_text, readable, tooltip_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.draw.folding.boxes import Item
    from micrograd.engine.value import Value

FRAME, GROUND, FAINT = "#b4bec9", "#f7f8fa", mixed(GREY, 0.45)
WIDE = 3  # arrows between Values; one that stands for more is wider
INFIX = {"add": "+", "sub": "−", "mul": "×", "div": "÷", "pow": "**"}


def folded_picture(root: Value, format: str, rankdir: str, kind: Callable[..., Any]) -> Any:  # noqa: A002
    """The picture of a graph in boxes.

    Args:
        root: the result of the graph.
        format: of the file.
        rankdir: where arrows lead, as Graphviz has it.
        kind: what to make: layout.Picture or dot.Source.

    Raises:
        ValueError: if the graph has a cycle.
    """
    with opened_arrays(root):
        return _Folded(root, rankdir).drawn(format, kind)


class _Folded:
    """One picture."""

    def __init__(self, root: Value, rankdir: str) -> None:
        self.root, self.rankdir = root, rankdir
        self.opening = Opening(root, rankdir == "TB")
        self.names: dict[Item, str] = {}
        nodes = self.opening.nodes
        gradients = [float(node.grad) for node in nodes]  # a Value after backward(create_graph=True)
        self.unreached = not any(gradient for node, gradient in zip(nodes, gradients, strict=True) if not node.is_leaf)
        self.largest = max((abs(gradient) for gradient in gradients if math.isfinite(gradient)), default=0.0)
        notes = note_on_gradients(gradients) if self.unreached else ""
        self.notes = notes + (
            f'<font color="{GREY}">{len(nodes):,} Values. A box stands for many: mg.explore opens it.</font>'
            '<br align="left"/>'
        )

    def drawn(self, format: str, kind: Callable[..., Any]) -> Any:  # noqa: A002
        style = graph_style(MOST_ITEMS, MOST_ITEMS, format)
        more = {"rankdir": self.rankdir, "compound": "true", "ranksep": "0.4", "label": f"<{self.notes}>"}
        picture = kind("micrograd", format=format, graph_attr=style | more, node_attr=NODE, edge_attr=EDGE)
        arrows = self._arrows()
        self._draw_inside(picture, None)
        self._draw_arrows(picture, arrows)
        self._put_in_order(picture, arrows)
        return picture

    def _draw_inside(self, picture: Any, box: Box | None) -> None:
        """Draw what is in an open box, or in none."""
        items = self.opening.items(box)
        for item in reversed(items):  # so Graphviz puts the first on top
            if isinstance(item, Box) and item in self.opening.open:
                self.names[item] = name = f"cluster{len(self.names)}"
                with picture.subgraph(name=name, graph_attr=_frame(self._title(item, is_open=True))) as inside:
                    self._draw_inside(inside, item)
            elif isinstance(item, Box):
                about_it = tooltip_text(f"{item.name}: {self.opening.counts[item]:,} Values")
                self._add(picture, item, self._closed(item), about_it, "box")
            else:
                self._add(picture, item, self._card(item), tooltip_of(item, self._name(item)), kind_of(item))
        if box is not None and box.kind == "parameters":  # nothing connects them, so they can stand in columns
            rows = rows_of_grid(len(items))
            for left, right in zip(items, items[rows:], strict=False):
                picture.edge(self.names[left], self.names[right], style="invis")

    def _put_in_order(self, picture: Any, arrows: Counter[tuple[Item, Item]]) -> None:
        """Let what has the same arrows stand in its order: x1 above x2, and the first neuron of a layer on top.

        Graphviz keeps the order of a row of nodes outside of boxes. So what stands in a box follows such a row of
        points, which are not seen.
        """
        ends: dict[Item, set[tuple[bool, Item]]] = {}
        for tail, head in arrows:
            ends.setdefault(tail, set()).add((True, head))
            ends.setdefault(head, set()).add((False, tail))
        alike: dict[Any, list[str]] = {}
        for item, name in reversed(self.names.items()):
            if item in ends and item not in self.opening.open:
                box = self._around(item)[-1:]
                its = ends[item] if not box or box[0].kind != "layer" else ()
                alike.setdefault((*box, frozenset(its)), []).append(name)
        for (*boxes, _), twins in alike.items():
            if len(twins) == 1:
                continue
            row = [f"before_{name}" for name in twins] if boxes else twins
            for point, name in zip(row, twins, strict=True) if boxes else ():
                picture.node(point, "", shape="point", width="0.01", style="invis")
                picture.edge(point, name, style="invis", weight="0")
            with picture.subgraph(name=f"row_{twins[0]}", graph_attr={"rank": "same"}) as inside:
                for first, second in pairwise(row):
                    inside.edge(first, second, style="invis")

    def _add(self, picture: Any, item: Item, table: str, tooltip: str, kind: str) -> None:
        self.names[item] = name = f"item{len(self.names)}"
        picture.node(name, f"<{table}>", tooltip=tooltip, **{"class": kind})

    # Cards

    def _card(self, node: Value) -> str:
        if node.is_leaf and not node.requires_grad:
            return _table(f'border="0" bgcolor="{PALE}" style="rounded"', [self._heading(node, readable(node.data))])
        frame = f'border="2" color="{INK}"' if node.is_leaf else f'border="1" color="{GREY}"'
        heading = self._heading(node, "")
        rows = [number_row("data", readable(node.data)), self._gradient(node)]
        return _table(f'{frame} bgcolor="white"', [heading, *rows] if heading else rows)

    def _heading(self, node: Value, number: str) -> str:
        """What a Value is called, and what made it; for a constant, which has no rows, its number."""
        name = label_text(node.label or self._short_name(node))
        if number:
            shown = f'<font color="{GREY}" point-size="10">{f"{name} = " if name else ""}{number}</font>'
        elif node.is_leaf:
            shown = f"<b>{name}</b>" if name else ""
        else:
            shown = _badge(label_text(self._operation(node)), name)
        return f'<tr><td colspan="2" align="left" balign="left">{shown}</td></tr>' if shown else ""

    def _name(self, node: Value) -> str:
        """What leads to a parameter in its module."""
        return self.opening.places[node].name if node in self.opening.places else ""

    def _short_name(self, node: Value) -> str:
        """What a parameter is called in the box of its neuron, where that is drawn around it; else its name."""
        in_neuron = any(box.kind == "neuron" or box.name.startswith("Neuron ") for box in self._around(node))
        return self.opening.places[node].hint if in_neuron and node in self.opening.places else self._name(node)

    def _operation(self, node: Value) -> str:
        """The symbol of an operation, with the plain number that it is shown with: × 2."""
        primitive, operands = node._primitive, node._operands()
        if primitive.name not in INFIX:
            return primitive.symbol or primitive.name
        symbol = INFIX[primitive.name]
        numbers = [readable(operand.data) if operand in self.opening.inside else "" for operand in operands]
        return f"{numbers[0]} {symbol} {numbers[1]}".strip()

    def _gradient(self, node: Value) -> str:
        return gradient_row(float(node.grad), self.largest, self.unreached)

    # Boxes

    def _closed(self, box: Box) -> str:
        title = f'<tr><td colspan="2" align="left">{self._title(box)}</td></tr>'
        outputs = self.opening.shown(box)
        if len(outputs) == 1:
            rows = [number_row("data", readable(outputs[0].data)), self._gradient(outputs[0])]
        elif cells := self._cells(box, outputs):
            rows = [_maps(box.shape, cells)]
        else:
            data, gradients = (
                [float(number) for number in numbers]
                for numbers in zip(*((node.data, node.grad) for node in outputs), strict=True)
            )
            rows = [_strip_row("data", strip(data)), _strip_row("grad", strip(gradients))]
            if self.root in outputs:
                rows.append(number_row("result", readable(self.root.data)))
        card = _table(f'border="1" color="{GREY}" bgcolor="white"', [title, *rows])
        return _behind(_behind(card)) if box.kind == "stack" else _behind(card)

    def _cells(self, box: Box, outputs: list[Value]) -> dict[tuple[int, ...], Value]:
        """By row and column, the parameters of a box that are a matrix; none where they are not."""
        if len(box.shape) != 2:
            return {}
        cells = {self.opening.places[node].indices: node for node in outputs}
        return cells if len(cells) == len(outputs) and all(len(indices) == 2 for indices in cells) else {}

    def _title(self, box: Box, is_open: bool = False) -> str:
        count = len(self.opening.members(box)) if box.kind == "stack" else box.shape[0] if box.kind == "vector" else 0
        formula, _ = about(box)
        name = f"<b>{label_text(box.name)}</b>"
        if formula and is_open:
            name += f' <font color="{GREY}"> = {label_text(formula)}</font>'
        return f'{name} <font color="{GREY}"> × {count:,}</font>' if count else name

    # Arrows

    def _arrows(self) -> Counter[tuple[Item, Item]]:
        """The arrows between what is in sight, and how many between Values each stands for."""
        arrows: Counter[tuple[Item, Item]] = Counter()
        for ends, count in self.opening.arrows().items():
            arrows[self._ends(*ends)] += count
        return arrows

    def _draw_arrows(self, picture: Any, arrows: Counter[tuple[Item, Item]]) -> None:
        direct = {
            ends
            for tail, head in arrows
            for ends in product([tail, *self._around(tail)], [head, *self._around(head)])
            if ends != (tail, head)
        }
        for (tail, head), count in arrows.items():
            is_inside = tail in self._around(head) or head in self._around(tail)
            if is_inside or (tail, head) in direct:
                continue  # what an open stack does not show has no arrow beside that of what it shows
            attributes = {"penwidth": "1.6"} if count > WIDE else {}
            if self._is_faint(tail):
                attributes["color"] = FAINT
            if tail in self.opening.open:
                attributes["ltail"] = self.names[tail]
            if head in self.opening.open:
                attributes["lhead"] = self.names[head]
            picture.edge(self._end(tail, -1), self._end(head, 0), **attributes)

    def _ends(self, tail: Item, head: Item) -> tuple[Item, Item]:
        """Where an arrow is drawn: parameters have one for all of a box that uses them."""
        ways = [*self._around(tail), tail], [*self._around(head), head]
        if not any(isinstance(item, Box) and item.kind == "parameters" for item in ways[0]):
            return tail, head
        return next(ends for ends in zip(*ways, strict=False) if ends[0] is not ends[1])

    def _around(self, item: Item) -> list[Box]:
        return self.opening.around(item)

    def _end(self, item: Item, place: int) -> str:
        """The name of an item for an arrow; for an open stack that of what is first, or last, in it."""
        while isinstance(item, Box) and item in self.opening.open:
            items = self.opening.items(item)
            item = items[-1 - rows_of_grid(len(items)) // 2 if item.kind == "parameters" else place]
        return self.names[item]

    def _is_faint(self, item: Item) -> bool:
        if isinstance(item, Box):
            return item.kind == "parameters"
        return item.is_leaf and (not item.requires_grad or item in self.opening.places)


def _table(attributes: str, rows: list[str]) -> str:
    return f'<table {attributes} cellborder="0" cellspacing="0" cellpadding="3">{"".join(rows)}</table>'


def _badge(operation: str, name: str) -> str:
    """An operation on a ground of its own, and the name of what it gave."""
    named = f"<td><b>{name}</b></td>" if name else ""
    return (
        '<table border="0" cellborder="0" cellspacing="0" cellpadding="2">'
        f'<tr><td bgcolor="{PALE}" style="rounded"> {operation} </td>{named}</tr></table>'
    )


def _strip_row(what: str, cells: str) -> str:
    return f'<tr><td align="left"><font color="{GREY}" point-size="9">{what}</font></td><td>{cells}</td></tr>'


def _maps(shape: tuple[int, ...], cells: dict[tuple[int, ...], Value]) -> str:
    """The heat maps of a matrix and of its gradients, side by side."""
    data, gradients = ([[0.0] * shape[1] for _ in range(shape[0])] for _ in range(2))
    for (row, column), node in cells.items():
        data[row][column], gradients[row][column] = float(node.data), float(node.grad)
    names = (f'<td align="left"><font color="{GREY}" point-size="9">{name}</font></td>' for name in ("data", "grad"))
    maps = (f'<td align="left">{heat_map(numbers)}</td>' for numbers in (data, gradients))
    return f"<tr>{''.join(names)}</tr><tr>{''.join(maps)}</tr>"


def _behind(card: str) -> str:
    """A card with another one behind it, of which the upper and the right edge are seen."""
    return (
        f'<table border="1" color="{FRAME}" bgcolor="{GROUND}" cellborder="0" cellspacing="0" cellpadding="0">'
        f'<tr><td height="4"></td><td width="4"></td></tr><tr><td>{card}</td><td></td></tr></table>'
    )


def _frame(title: str) -> dict[str, str]:
    """How an open box looks."""
    return {
        "label": f"<{title}>",
        "labelloc": "t",
        "labeljust": "l",
        "style": "rounded,filled",
        "fontcolor": INK,
        "color": FRAME,
        "fillcolor": GROUND,
        "margin": "10",
    }
