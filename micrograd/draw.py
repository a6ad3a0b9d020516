r"""Pictures of the graph that a Value remembers: each Value a card, each operation a box with its symbol.

    draw_dot(loss)              # shown by a notebook; .render("loss") writes it
    save(loss, "loss.svg")      # .svg, .png, .pdf or .dot

A card has the label, the number (data) and the gradient (grad) of a Value. Leaves, which a program
starts from, have a thick frame; results a thin one; constants, to which no gradient flows, are small and
grey, and their arrows dashed. Behind a gradient, blue says positive and orange negative, the stronger
the larger it is beside the others of the picture. Arrows lead from operands through the operation to
the result, one for each operand: ``a * a`` has two. Where their order matters, they are numbered.

Labels are shown as typed, in as many lines. Of a character that a picture cannot show, such as a tab, a
zero byte or half a surrogate pair, Python's way to write it is shown: ``\\t``, ``\\x00``, ``\\ud800``.
"""

from __future__ import annotations

import math
import os
import unicodedata
from graphlib import CycleError, TopologicalSorter
from html import escape
from typing import TYPE_CHECKING

from micrograd.backpropagation import topological_order
from micrograd.closures import HandWritten
from micrograd.engine import Value
from micrograd.node import NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import graphviz

    from micrograd.files import StrPath
    from micrograd.registry import Primitive

# Measured with Graphviz 14, on networks, polynomials and random programs: a layout at these limits takes 1 to 9
# seconds. Beside the nodes the time goes by the layers that arrows pass on their way: the weights of a recurrent
# network have arrows past nearly all of them, and at 285,000 its layout takes 44 seconds. A tangle of long arrows
# takes minutes where they bend around what is in their way, so past some number of layers they are straight.
NODE_LIMIT = 3_000
LAYER_LIMIT = 100_000
STRAIGHT_FROM = 10_000
NOTEBOOK_LIMITS = 200, 2_000  # nodes and layers: what a notebook shows unasked is to be there at once
LABEL_LIMIT = 60  # characters

INK, GREY, PALE = "#1f2933", "#616e7c", "#e9edf1"
POSITIVE, NEGATIVE, NOT_A_NUMBER = "#0072b2", "#d55e00", "#cc79a7"  # told apart by the colour-blind too
WARNING = "#a33c00"
DECADES = 3  # a gradient a thousand times smaller than the largest has the palest tint
FONT = "Helvetica,Arial,sans-serif"  # all three as wide where text is measured, so numbers stay flush right
CUT = "⋯"
SYMMETRIC = ("add", "mul", "maximum", "minimum")

SUFFIXES = (".svg", ".png", ".pdf", ".dot")
RANKDIRS = ("LR", "TB")


def trace(root: Value) -> tuple[list[Value], list[tuple[Value, Value]]]:
    """The nodes and edges of the graph under a Value.

    Args:
        root: the Value to start from, usually a result.

    Returns:
        The Values, each after its operands, and a pair (operand, result) for each operand of each
        result: ``a * a`` gives the pair of a and the product twice.

    Raises:
        TypeError: for what is not a Value.
        ValueError: if the graph has a cycle.

    Example:
        >>> a = Value(3.0)
        >>> nodes, edges = trace(a * a)
        >>> [node.data for node in nodes], len(edges)
        ([3.0, 9.0], 2)
    """
    _check_root(root)
    nodes = topological_order(root)
    return nodes, [(operand, node) for node in nodes for operand in node._operands()]


def draw_dot(
    root: Value,
    format: str = "svg",  # noqa: A002  # the name it has in micrograd's notebooks
    rankdir: str = "LR",
    *,
    depth: int | None = None,
) -> graphviz.Digraph:
    """Draw the graph under a Value.

    Args:
        root: the Value to start from, usually a result.
        format: of the picture: ``"svg"``, ``"png"``, ``"pdf"`` or another that Graphviz has.
        rankdir: ``"LR"`` for left to right, ``"TB"`` for top to bottom.
        depth: draw only what is within so many operations of root; what is cut off shows as dots.

    Returns:
        A graphviz.Digraph: a notebook shows it, ``.render("name")`` writes it to a file, ``.pipe()``
        gives its bytes, ``.source`` is its text in Graphviz's language.

    Raises:
        TypeError: if root is not a Value, format no string, or depth no whole number.
        ValueError: for an unknown format or rankdir, or a graph too large for a picture.
        ImportError: if the extra ``micrograd[draw]`` is not installed.

    Example:
        >>> a = Value(3.0, label="a")
        >>> picture = draw_dot(a * a)
        >>> picture.pipe(encoding="utf-8").count('class="edge"')
        3
    """
    _check_root(root)
    if not isinstance(format, str):
        raise TypeError(f"format must be a string such as 'svg', not {type(format).__name__}: {format!r:.80}")
    if rankdir not in RANKDIRS:
        raise ValueError(f"rankdir must be one of {', '.join(RANKDIRS)}, not {rankdir!r}")
    nodes = _all_nodes(root) if depth is None else _nodes_within(root, _checked_depth(depth))
    if (layers := _layers_passed(nodes)) > LAYER_LIMIT:
        raise _too_large(f"the arrows of this graph pass {layers:,} layers of it; a picture holds {LAYER_LIMIT:,}")
    return _picture(root, nodes, layers, format.lower(), rankdir)


def save(root: Value, path: StrPath, rankdir: str = "LR", *, depth: int | None = None) -> None:
    """Draw the graph under a Value into a file, whose suffix says the format.

    The file is written whole or not at all.

    Args:
        root: the Value to start from, usually a result.
        path: where to write; ends in ``.svg``, ``.png``, ``.pdf`` or ``.dot``.
        rankdir: ``"LR"`` for left to right, ``"TB"`` for top to bottom.
        depth: draw only what is within so many operations of root.

    Raises:
        ValueError: for another suffix, and what draw_dot raises.
        OSError: if the file cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(Value(2.0) + 1, f"{folder}/sum.svg")
        ...     os.listdir(folder)
        ['sum.svg']
    """
    save_picture(lambda format: draw_dot(root, format, rankdir, depth=depth), path)  # noqa: A006


def save_picture(draw: Callable[[str], graphviz.Digraph], path: StrPath) -> None:
    """Write what draw makes of a format into a file, whose suffix says the format: whole, or not at all."""
    from micrograd.files import write_atomically

    suffix = os.path.splitext(path)[1].lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"a picture's file must end in one of {', '.join(SUFFIXES)}: {os.fspath(path)!r}")
    picture = draw(suffix[1:])
    write_atomically(path, picture.source.encode() if suffix == ".dot" else picture.pipe())


def svg(root: Value) -> str:
    """The picture of the graph under a Value, as the text of an SVG file.

    Raises:
        TypeError: as draw_dot does.
        ValueError: as draw_dot does.
        ImportError: as draw_dot does.

    Example:
        >>> svg(Value(2.0) + 1).rstrip()[-6:]
        '</svg>'
    """
    return draw_dot(root).pipe(encoding="utf-8")  # type: ignore[no-any-return]  # graphviz has no types


def svg_or_none(root: Value) -> str | None:
    """The picture, or None where a notebook had better show text.

    That is where the extra ``micrograd[draw]`` is not installed, or the graph is too large to be
    drawn at once.

    Example:
        >>> x = Value(2.0)
        >>> for _ in range(1000):
        ...     x = x + 1
        >>> svg_or_none(x) is None
        True
    """
    nodes, layers = NOTEBOOK_LIMITS
    try:
        small = _count(root, nodes) <= nodes and _layers_passed(topological_order(root)) <= layers
        return svg(root) if small else None
    except (ImportError, ValueError):  # a ValueError: the arrows go in a circle
        return None


# What is drawn


def _check_root(root: object) -> None:
    if not isinstance(root, Value):
        raise TypeError(f"a picture is drawn of a Value, not of {type(root).__name__}: {root!r:.80}")


def _checked_depth(depth: object) -> int:
    if not isinstance(depth, int) or isinstance(depth, bool):
        raise TypeError(f"depth must be a whole number, not {type(depth).__name__}: {depth!r:.80}")
    if depth < 0:
        raise ValueError(f"depth must not be negative: {depth}")
    return depth


def _all_nodes(root: Value) -> list[Value]:
    if (count := _count(root)) > NODE_LIMIT:
        raise _too_large(f"this graph has {count:,} nodes, and a picture holds {NODE_LIMIT:,}")
    return topological_order(root)


def _nodes_within(root: Value, depth: int) -> list[Value]:
    """What is within so many operations of root, each after its operands."""
    reached = layer = {root: None}
    for distance in range(1, depth + 1):
        operands = (operand for node in layer for operand in node._operands())
        layer = {operand: None for operand in operands if operand not in reached}
        reached = reached | layer
        if len(reached) > NODE_LIMIT:
            raise _too_large(f"within {distance} operations of it are more than {NODE_LIMIT:,} nodes", distance - 1)
        if not layer:
            break
    inner = {node: [operand for operand in node._operands() if operand in reached] for node in reached}
    try:
        return list(TopologicalSorter(inner).static_order())
    except CycleError:
        raise ValueError("the graph has a cycle") from None


def _count(root: Value, enough: float = math.inf) -> int:
    """How many nodes there are; of more than enough, some number of them.

    Unlike trace this makes no Values of the plain numbers, so the graph stays as small as it was.
    """
    seen, numbers, stack = {root}, 0, [root]
    while stack and len(seen) + numbers <= enough:
        node = stack.pop()
        if node.is_leaf:
            continue
        primitive = node._primitive
        operands = node._x if primitive.first is None else (node._first, node._second)[: len(primitive.derivatives)]
        for operand in operands:
            if operand is NUMBER or not isinstance(operand, Value):
                numbers += 1
            elif operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return len(seen) + numbers


def _layers_passed(nodes: list[Value]) -> int:
    """How many layers the arrows pass together, where leaves stand right before their first use."""
    layers: dict[Value, float] = {}
    nearest: dict[Value, float] = {}
    arrows = []
    for node in nodes:
        operands = [operand for operand in node._operands() if operand in layers]
        layers[node] = 2 + max((layers[operand] for operand in operands), default=-2)  # an operation stands between
        for operand in operands:
            arrows.append((operand, node))
            nearest[operand] = min(nearest.get(operand, math.inf), layers[node] - 2)
    starts = {operand: nearest[operand] if operand.is_leaf else layers[operand] for operand in nearest}
    return int(sum(layers[node] - starts[operand] for operand, node in arrows))


def _too_large(what: str, depth: int = 5) -> ValueError:
    return ValueError(f"{what}. Draw the part of it next to the result: draw_dot(root, depth={min(depth, 5)})")


# How it looks


def _picture(root: Value, nodes: list[Value], layers: int, format: str, rankdir: str) -> graphviz.Digraph:  # noqa: A002
    from micrograd.layout import Picture

    names = {node: f"value{number}" for number, node in enumerate(nodes)}
    picture = Picture(
        "micrograd",
        format=format,
        graph_attr=_graph_style(len(nodes), layers, format) | {"rankdir": rankdir},
        node_attr={"shape": "plain", "fontname": FONT, "fontsize": "11", "fontcolor": INK},
        edge_attr={"color": GREY, "arrowsize": "0.6"},
    )
    gradients = {node: float(node.grad) for node in nodes}  # a Value after backward(create_graph=True)
    unreached = not root.is_leaf and not any(gradients[node] for node in nodes if not node.is_leaf)
    largest = max(abs(gradient) for gradient in (0.0, *gradients.values()) if math.isfinite(gradient))
    for node, gradient in reversed(gradients.items()):  # from the result back, first operands come to stand on top
        shown = "—" if unreached and gradient == 0 else readable(gradient)
        _draw_value(picture, node, names[node], _row("grad", shown, _tint(gradient, largest)))
    for node in nodes:
        if not node.is_leaf:
            _draw_operation(picture, node, names, rankdir)
    notes = _note_on_gradients(gradients.values()) if unreached else ""
    if any(operand not in names for node in nodes for operand in node._operands()):
        notes += f'<font color="{GREY}">{CUT} stands for operands that are not drawn.</font><br align="left"/>'
    if notes:
        picture.graph_attr["label"] = f"<{notes}>"
    return picture


def _graph_style(nodes: int, layers: int, format: str) -> dict[str, str]:  # noqa: A002
    # Without a bound on these two, Graphviz may improve the layout of a hundred nodes for minutes, unseen.
    effort = f"{min(30.0, 5e6 / (nodes * (layers + 1))):.3g}"
    style = {
        "nslimit": effort,
        "nslimit1": effort,
        "ranksep": "0.3",
        "nodesep": "0.15",
        "pad": "0.15",
        "bgcolor": "white",
        "fontname": FONT,
        "fontsize": "11",
        "labelloc": "b",
        "labeljust": "l",
    }
    if layers > STRAIGHT_FROM:
        style |= {"splines": "line", "mclimit": "0.1"}
    # For screens with two pixels a point; the largest, 40 inches a side, is a bitmap of a quarter of a gigabyte.
    return style | {"dpi": "192", "size": "40,40"} if format == "png" else style


def _draw_value(picture: graphviz.Digraph, node: Value, name: str, gradient: str) -> None:
    if not node.requires_grad:
        kind, table = "constant", _constant(node)
    elif node.is_leaf:
        kind, table = "leaf", _card(node, gradient, f'border="2" color="{INK}"')
    else:
        kind, table = "result", _card(node, gradient, f'border="1" color="{GREY}"')
    picture.node(name, f"<{table}>", tooltip=_in_tooltip(repr(node)), **{"class": kind})


def _constant(node: Value) -> str:
    label = f"{_shown(node.label)} = " if node.label else ""
    text = f'<font color="{GREY}" point-size="10">{label}{readable(node.data)}</font>'
    return f'<table border="0" cellpadding="3" bgcolor="{PALE}" style="rounded"><tr><td>{text}</td></tr></table>'


def _card(node: Value, gradient: str, frame: str) -> str:
    """The rows label, data and grad, with rules between them."""
    label = f'<tr><td colspan="2" align="left" balign="left"><b>{_shown(node.label)}</b></td></tr>'
    rows = [label] if node.label else []
    rows += [_row("data", readable(node.data)), gradient]
    return f'<table {frame} bgcolor="white" cellborder="0" cellspacing="0" cellpadding="3">{"<hr/>".join(rows)}</table>'


def _row(what: str, number: str, background: str = "white") -> str:
    name = f'<td align="left"><font color="{GREY}" point-size="9">{what}</font></td>'
    return f'<tr>{name}<td align="right" bgcolor="{background}">{number}</td></tr>'


def _draw_operation(picture: graphviz.Digraph, node: Value, names: dict[Value, str], rankdir: str) -> None:
    """Draw what made a node, and the arrows to it and from it."""
    primitive, operands = node._primitive, node._operands()
    name = f"{names[node]}_operation"
    numbered = _is_numbered(primitive, len(operands))
    symbol = f'<font point-size="12">{_shown(primitive.symbol or primitive.name)}</font>'
    rows = _numbered_rows(symbol, len(operands), rankdir) if numbered else f'<tr><td width="20">{symbol}</td></tr>'
    frame = f'border="1" color="{GREY}" bgcolor="white" style="rounded"'
    table = f'<table {frame} cellborder="0" cellspacing="0" cellpadding="3">{rows}</table>'
    picture.node(name, f"<{table}>", tooltip=_in_tooltip(primitive.name), **{"class": "operation"})
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


def _note_on_gradients(gradients: Iterable[float]) -> str:
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
    colour = POSITIVE if gradient > 0 else NEGATIVE
    return "#" + "".join(f"{round(255 + share * (channel - 255)):02x}" for channel in bytes.fromhex(colour[1:]))


# Texts


def readable(number: float) -> str:
    """A number as it is where that is short, else to four digits: 1.000 is nearly 1, and 1 is 1.

    Example:
        >>> [readable(x) for x in (1.0, 0.99999, -24.5, 24.7041, 1382.47, 1e-300, 123456.0, math.nan)]
        ['1', '1.000', '-24.5', '24.70', '1382.5', '1e-300', '123456', 'nan']
    """
    exact = repr(number).removesuffix(".0")
    if len(exact.removeprefix("-")) <= 6:
        return exact
    rounded = f"{number:#.4g}"
    return f"{number:.1f}" if rounded.endswith(".") else rounded


def _shown(label: object) -> str:
    """A label, shown as typed, in Graphviz's language; cut where it is long."""
    text = str(label)
    if len(text) > LABEL_LIMIT:
        text = f"{text[: LABEL_LIMIT - 1]}…"
    text = "".join(map(visible, text)).replace("\\", "\\\\")  # Graphviz has its own use for \\N and \\L
    return escape(text).replace("\n", "<br/>")


def visible(character: str) -> str:
    """A character, or its escape in Python where it is one that XML cannot hold or Graphviz would drop."""
    unseen = unicodedata.category(character) in ("Cc", "Cs") or character in "\ufffe\uffff"
    return repr(character)[1:-1] if unseen and character != "\n" else character


def _in_tooltip(text: str) -> str:
    return escape("".join(map(visible, text))).replace("\\", 4 * "\\")  # a tooltip is unescaped twice
