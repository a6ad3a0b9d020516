"""How a Value and an operation look in a picture: cards and nodes in Graphviz's table language.

A card has the label, the number (data) and the gradient (grad) of a Value. Leaves, which a program starts
from, have a thick frame; results a thin one; constants, to which no gradient flows, are small and grey.
Behind a gradient, blue says positive and orange negative, the stronger the larger it is beside the others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from micrograd.draw.style import GREY, INK, NEGATIVE, NOT_A_NUMBER, PALE, POSITIVE, WARNING, mixed
from micrograd.draw.text import label_text, readable, tooltip_text
from micrograd.engine.history import HandWritten

if TYPE_CHECKING:
    from collections.abc import Iterable

    import graphviz

    from micrograd.engine.primitive import Primitive
    from micrograd.engine.value import Value

DECADES = 3  # a gradient a thousand times smaller than the largest has the palest tint
CUT = "⋯"
FRAMES = {"leaf": f'border="2" color="{INK}"', "result": f'border="1" color="{GREY}"'}
SYMMETRIC = ("add", "mul", "maximum", "minimum")


def draw_value(picture: graphviz.Digraph, node: Value, name: str, gradient: str, way: str) -> None:
    """Draw a Value: a card with this row for its gradient, or a small box for a constant.

    Args:
        picture: to draw it in.
        node: the Value.
        name: in the picture.
        gradient: the row.
        way: what leads to it in a module, if anything does; shown where it has no label.
    """
    kind = kind_of(node)
    table = _constant(node) if kind == "constant" else _card(node, gradient, FRAMES[kind], way)
    picture.node(name, f"<{table}>", tooltip=tooltip_of(node, way), **{"class": kind})


def tooltip_of(node: Value, way: str) -> str:
    """What is seen of a Value when it is pointed at: with what leads to it in a module."""
    return tooltip_text(f"{way}: {node!r}" if way else repr(node))


def kind_of(node: Value) -> str:
    """Whether a Value is a constant, to which no gradient flows, a leaf or a result."""
    return "constant" if not node.requires_grad else "leaf" if node.is_leaf else "result"


def _constant(node: Value) -> str:
    label = f"{label_text(node.label)} = " if node.label else ""
    text = f'<font color="{GREY}" point-size="10">{label}{readable(node.data)}</font>'
    return f'<table border="0" cellpadding="3" bgcolor="{PALE}" style="rounded"><tr><td>{text}</td></tr></table>'


def _card(node: Value, gradient: str, frame: str, way: str) -> str:
    """The rows label, data and grad, with rules between them."""
    label = f"<b>{label_text(node.label)}</b>" if node.label else name_in_module(way)
    rows = [f'<tr><td colspan="2" align="left" balign="left">{label}</td></tr>'] if label else []
    rows += [number_row("data", readable(node.data)), gradient]
    return f'<table {frame} bgcolor="white" cellborder="0" cellspacing="0" cellpadding="3">{"<hr/>".join(rows)}</table>'


def name_in_module(way: str) -> str:
    """What leads to a parameter, smaller than a label; nothing where there is nothing to say."""
    return f'<font color="{GREY}" point-size="9">{label_text(way)}</font>' if way else ""


def gradient_row(gradient: float, largest: float, unreached: bool) -> str:
    """The row of a gradient, tinted by its size beside the largest; a dash where backward() has not run."""
    shown = "—" if unreached and gradient == 0 else readable(gradient)
    return number_row("grad", shown, _tint(gradient, largest))


def number_row(what: str, number: str, background: str = "white") -> str:
    """A row of a card: what a number is, and the number."""
    name = f'<td align="left"><font color="{GREY}" point-size="9">{what}</font></td>'
    return f'<tr>{name}<td align="right" bgcolor="{background}">{number}</td></tr>'


def draw_operation(picture: graphviz.Digraph, node: Value, names: dict[Value, str], rankdir: str) -> None:
    """Draw what made a node, and the arrows to it and from it."""
    primitive, operands = node._primitive, node._operands()
    name = f"{names[node]}_operation"
    numbered = _is_numbered(primitive, len(operands))
    symbol = f'<font point-size="12">{label_text(primitive.symbol or primitive.name)}</font>'
    rows = _numbered_rows(symbol, len(operands), rankdir) if numbered else f'<tr><td width="20">{symbol}</td></tr>'
    frame = f'border="1" color="{GREY}" bgcolor="white" style="rounded"'
    table = f'<table {frame} cellborder="0" cellspacing="0" cellpadding="3">{rows}</table>'
    picture.node(name, f"<{table}>", tooltip=tooltip_text(primitive.name), **{"class": "operation"})
    picture.edge(name, names[node])
    cut_off: dict[str, None] = {}
    for place, operand in enumerate(operands, 1):
        end = f"{name}:{place}:{'w' if rankdir == 'LR' else 'n'}" if numbered else name
        if operand in names:
            picture.edge(names[operand], end, style="" if operand.requires_grad else "dashed")
        else:
            cut_off[end] = None  # once where operands share it
    if cut_off:
        dots = f'<<font color="{GREY}" point-size="14">{CUT} </font>>'
        picture.node(f"{name}_cut", dots, tooltip="not drawn", **{"class": "cut"})
    for end in cut_off:
        picture.edge(f"{name}_cut", end, style="dotted")


def _is_numbered(primitive: Primitive, count: int) -> bool:
    """Whether the order of the operands matters; more than a few, as of a compiled function, have no numbers."""
    return 2 <= count <= 4 and not isinstance(primitive, HandWritten) and primitive.name not in SYMMETRIC


def _numbered_rows(symbol: str, count: int, rankdir: str) -> str:
    """An operation with a small numbered cell for each arrow to end in."""
    cells = [
        f'<td port="{place}" cellpadding="1"><font color="{GREY}" point-size="7">{place}</font></td>'
        for place in range(1, count + 1)
    ]
    if rankdir == "TB":
        return f'<tr>{"".join(cells)}</tr><tr><td colspan="{count}">{symbol}</td></tr>'
    cells[0] += f'<td rowspan="{count}">{symbol}</td>'
    return "".join(f"<tr>{cell}</tr>" for cell in cells)


def note_on_gradients(gradients: Iterable[float]) -> str:
    """What to say where no result has a gradient."""
    if any(gradients):
        text = "No result has a gradient: those of the leaves are from another graph."
    else:
        text = "No gradients: backward() has not run, or they are all 0."
    return f'<font color="{WARNING}">{text}</font><br align="left"/>'


def _tint(gradient: float, largest: float) -> str:
    """The colour behind a gradient: its hue says the sign, its strength the size beside the largest."""
    if math.isnan(gradient):
        return NOT_A_NUMBER
    if gradient == 0:
        return "white"
    decades = math.log10(largest) - math.log10(abs(gradient)) if math.isfinite(gradient) else 0.0
    share = 0.6 - 0.45 * min(decades / DECADES, 1.0)
    return mixed(POSITIVE if gradient > 0 else NEGATIVE, share)
