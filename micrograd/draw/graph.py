r"""Pictures of a Value's graph: each Value is a card, each operation a node with its symbol.

    draw_dot(loss)              # shown by a notebook; .render("loss") writes it
    save(loss, "loss.svg")      # .svg, .png, .pdf or .dot

A card has the label, the number (data) and the gradient (grad) of a Value. Leaves, which a program
starts from, have a thick frame; results a thin one; constants, to which no gradient flows, are small and
grey, and their arrows dashed. Behind a gradient, blue says positive and orange negative, the stronger
the larger it is beside the others of the picture. Arrows lead from operands through the operation to
the result, one for each operand: ``a * a`` has two. Where their order matters, they are numbered.

A graph of more than 200 Values is folded, and so is a network that would be wider than a laptop: see folded.py.

Labels are shown as typed, in as many lines. Of a character that a picture cannot show, such as a tab, a
zero byte or half a surrogate pair, Python's way to write it is shown: ``\\t``, ``\\x00``, ``\\ud800``.
"""

from __future__ import annotations

import math
import os
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import check_type
from micrograd.draw.card import CUT, draw_operation, draw_value, gradient_row, note_on_gradients
from micrograd.draw.dot import Source
from micrograd.draw.lecture import as_in_lecture
from micrograd.draw.style import EDGE, GREY, NODE, graph_style
from micrograd.engine.node import NUMBER
from micrograd.engine.order import topological_order
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    import graphviz

    from micrograd._support.files import StrPath

# Measured with Graphviz 14, on networks, polynomials and random programs: a layout at these limits takes 1 to 9
# seconds. Besides the nodes, the layers that arrows pass on their way take time: in a recurrent network the arrows
# from the weights pass nearly all of them, and at 285,000 the layout takes 44 seconds. A tangle of long arrows
# takes minutes where they bend around what is in their way, so past some number of layers they are straight.
NODE_LIMIT = 3_000
LAYER_LIMIT = 100_000
LARGEST_WHOLE = 200, 2_000  # nodes and layers of a graph that is drawn whole unasked; larger ones are folded
# Operations one after the other that are drawn whole where there are boxes to fold them into. One takes about 160
# points (measured: 130 to 175), so that six are as wide as a laptop's 1,280 pixels.
LONGEST_WHOLE = 6
FOLD_LIMIT = 100_000  # nodes; folding so many takes some seconds
NOTEBOOK_LIMIT = 50_000  # a notebook shows pictures unasked, so they must be drawn at once

SUFFIXES = (".svg", ".png", ".pdf", ".dot")
RANKDIRS = ("LR", "TB")
STYLES = ("written", "micrograd")


def trace(root: Value) -> tuple[list[Value], list[tuple[Value, Value]]]:
    """The nodes and edges of the graph under a Value: micrograd's function of this name.

    A trace of the compiler is something else: the operations of one run of a function.

    Args:
        root: the Value to start from, usually a result.

    Returns:
        The Values, each after its operands, and a pair (operand, result) for each operand of each
        result: ``a * a`` has the pair of a and the product twice.

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
    root: Any,
    format: str = "svg",  # noqa: A002  # the name it has in micrograd's notebooks
    rankdir: str = "LR",
    *,
    depth: int | None = None,
    style: str = "written",
    fold: bool | None = None,
) -> graphviz.Digraph:
    """Draw the graph under a Value, or the kernels of the last call of a compiled function.

    Args:
        root: the Value to start from, usually a result. Or a compiled function, for which only format applies.
        format: of the picture: ``"svg"``, ``"png"``, ``"pdf"`` or another that Graphviz has.
        rankdir: ``"LR"`` for left to right, ``"TB"`` for top to bottom.
        depth: draw only what is within so many operations of root; dots mark the rest.
        style: ``"written"`` draws the operations of the program; ``"micrograd"`` those of micrograd's lecture,
            where ``a - b`` is ``a + b * -1``, and ``a / b`` is ``a * b**-1``. The extra nodes have gradients, too.
        fold: whether to draw repetition as one group, as ``explore`` does: calls, layers, neurons, samples, steps,
            sums and vectors. Groups are open as long as you can read the picture. By default, without depth and
            style, graphs of more than 200 nodes are folded. So are calls and layers of more than 6 operations in
            sequence, which would be wider than 1,280 pixels.

    Returns:
        A graphviz.Digraph: a notebook shows it, ``.render("name")`` writes it to a file, ``.pipe()``
        gives its bytes, ``.source`` is its text in Graphviz's language.

    Raises:
        TypeError: if an argument has the wrong type; for rankdir, depth, style or fold with a compiled function.
        ValueError: for an unknown format, rankdir or style; for fold with depth or another style; for more than 3,000
            nodes, or 100,000 folded.
        ImportError: if graphviz is not installed; to lay it out, you also need pygraphviz.

    Example:
        >>> a = Value(3.0, label="a")
        >>> picture = draw_dot(a * a)
        >>> picture.pipe(encoding="utf-8").count('class="edge"')
        3
    """
    from micrograd.draw.layout import Picture

    if _draws_itself(root, rankdir, depth, style, fold):
        return root.draw_dot(format)
    return _drawn(root, format, rankdir, depth, style, fold, Picture)


def _draws_itself(root: Any, *settings: Any) -> bool:
    """Whether this is a compiled function, which draws its kernels, always from left to right."""
    if not hasattr(type(root), "draw_dot"):
        return False
    if settings != ("LR", None, "written", None):
        raise TypeError("the picture of a compiled function takes no rankdir, depth, style or fold")
    return True


def save(
    root: Any,
    path: StrPath,
    rankdir: str = "LR",
    *,
    depth: int | None = None,
    style: str = "written",
    fold: bool | None = None,
) -> None:
    """Draw a graph, a compiled function or a sparse matrix into a file; its suffix chooses the format.

    The file is written completely or not at all. A ``.dot`` file is text, and needs no other package.

    Args:
        root: the Value to start from, usually a result. Or a compiled function: the kernels of its last call with their
            shapes. Or a sparse matrix of SciPy, whose pattern becomes an ``.svg``.
        path: where to write; ends in ``.svg``, ``.png``, ``.pdf`` or ``.dot``.
        rankdir: ``"LR"`` for left to right, ``"TB"`` for top to bottom.
        depth: draw only what is within so many operations of root.
        style: ``"written"``, or ``"micrograd"`` for the operations of micrograd's lecture, as in draw_dot.
        fold: whether to draw repetition as one group, as in draw_dot; by default in large graphs and in networks
            too wide for a laptop.

    Raises:
        ValueError: for another suffix, and what draw_dot raises.
        TypeError: for a Module, which has its own ``save``, and what draw_dot raises.
        OSError: if the file cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(Value(2.0) + 1, f"{folder}/sum.svg")
        ...     os.listdir(folder)
        ['sum.svg']
    """
    if hasattr(root, "tocoo"):
        _save_pattern(root, path)
        return
    if _draws_itself(root, rankdir, depth, style, fold):
        root.save(path)
        return
    if hasattr(root, "state_dict"):  # a Module or an optimiser
        name = type(root).__name__
        raise TypeError(
            f"mg.save draws the graph of a Value, not of {name}: for the numbers of the {name}, write "
            f"model.save({os.fspath(path)!r}); for a picture, give a result of it"
        )
    save_picture(lambda format, kind: _drawn(root, format, rankdir, depth, style, fold, kind), path)  # noqa: A006


def _save_pattern(matrix: Any, path: StrPath) -> None:
    """Write the picture of a sparse matrix."""
    from micrograd._support.files import write_atomically
    from micrograd.draw.pattern import svg_of_pattern

    if os.path.splitext(path)[1].lower() != ".svg":
        raise ValueError(f"the pattern of a matrix is drawn into a file that ends in .svg: {os.fspath(path)!r}")
    write_atomically(path, svg_of_pattern(matrix).encode())


def save_picture(draw: Callable[[str, Callable[..., Any]], Any], path: StrPath) -> None:
    """Write a picture into a file, whose suffix says the format: whole, or not at all.

    Args:
        draw: makes the picture; takes the format, and what to make: layout.Picture or dot.Source.
        path: where to write.
    """
    from micrograd._support.files import write_atomically

    suffix = os.path.splitext(path)[1].lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"a picture's file must end in one of {', '.join(SUFFIXES)}: {os.fspath(path)!r}")
    if suffix == ".dot":
        write_atomically(path, draw("dot", Source).source.encode())
        return
    from micrograd.draw.layout import Picture

    write_atomically(path, draw(suffix[1:], Picture).pipe())


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
    return draw_dot(root).pipe(encoding="utf-8")


def svg_or_none(root: Value) -> str | None:
    """The picture, or None where a notebook should show text.

    That is where graphviz or pygraphviz is not installed, or the graph is too large to be
    drawn at once.

    Example:
        >>> x = Value(2.0)
        >>> for _ in range(50_000):
        ...     x = x + 1
        >>> svg_or_none(x) is None
        True
    """
    try:
        return svg(root) if _count(root, NOTEBOOK_LIMIT) <= NOTEBOOK_LIMIT else None
    except (ImportError, ValueError):  # a ValueError: the graph has a cycle
        return None


# What is drawn


def _drawn(
    root: Value,
    format: str,  # noqa: A002
    rankdir: str,
    depth: int | None,
    style: str,
    fold: bool | None,
    kind: Callable[..., Any],
) -> Any:
    """The picture as draw_dot gives it, of this kind: layout.Picture or dot.Source."""
    _check_root(root)
    check_type(isinstance(format, str), "format must be a string such as 'svg'", format)
    if rankdir not in RANKDIRS:
        raise ValueError(f"rankdir must be one of {', '.join(RANKDIRS)}, not {rankdir!r}")
    if style not in STYLES:
        raise ValueError(f"style must be one of {', '.join(STYLES)}, not {style!r}")
    is_part = depth is not None or style == "micrograd"
    if fold and is_part:
        raise ValueError("a folded picture shows all of a graph, and as it is written: leave out depth and style")
    if fold or (fold is None and not is_part and _is_large(root)):
        if (count := _count(root)) > FOLD_LIMIT:
            raise _too_large(f"this graph has {count:,} nodes, and a folded picture holds {FOLD_LIMIT:,}")
        from micrograd.draw.folded import folded_picture  # here, so that it is loaded only for large graphs

        return folded_picture(root, format.lower(), rankdir, kind)
    nodes = _nodes(root, depth)
    names = _names(root, nodes) if style == "written" else {}
    if style == "micrograd":
        root = as_in_lecture(nodes)
        nodes = _nodes(root, depth)
    if (layers := _layers_passed(nodes)) > LAYER_LIMIT:
        raise _too_large(f"the arrows of this graph pass {layers:,} layers of it; a picture holds {LAYER_LIMIT:,}")
    return _picture(root, nodes, layers, format.lower(), rankdir, kind, names)


def _check_root(root: object) -> None:
    if not isinstance(root, Value):
        raise TypeError(f"a picture is drawn of a Value, not of {type(root).__name__}: {root!r:.80}")


def _checked_depth(depth: object) -> int:
    if not isinstance(depth, int) or isinstance(depth, bool):
        raise TypeError(f"depth must be a whole number, not {type(depth).__name__}: {depth!r:.80}")
    if depth < 0:
        raise ValueError(f"depth must not be negative: {depth}")
    return depth


def _nodes(root: Value, depth: int | None) -> list[Value]:
    """The nodes to draw, each after its operands, and root last."""
    return _all_nodes(root) if depth is None else _nodes_within(root, _checked_depth(depth))


def _all_nodes(root: Value) -> list[Value]:
    if (count := _count(root)) > NODE_LIMIT:
        raise _too_large(f"this graph has {count:,} nodes, and a picture holds {NODE_LIMIT:,}")
    return topological_order(root)


def _nodes_within(root: Value, depth: int) -> list[Value]:
    """The nodes within so many operations of root, each after its operands."""
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


def _names(root: Value, nodes: list[Value]) -> dict[Value, str]:
    """What parameters without a label are called: by the way that leads to them from the module that they belong to."""
    is_nameless = (node.is_leaf and node.requires_grad and not node.label for node in nodes)
    if not any(is_nameless) or _count(root, NODE_LIMIT) > NODE_LIMIT:
        return {}
    from micrograd.draw.folding.groups import places_of  # here, so that it is loaded only where there are parameters

    return {node: place.name for node, place in places_of(topological_order(root)).items()}


def _is_large(root: Value) -> bool:
    """Whether a picture of all nodes would be too large to be read, or, of calls and layers, too wide for a laptop."""
    most, layers = LARGEST_WHOLE
    if _count(root, most) > most or _layers_passed(nodes := topological_order(root)) > layers:
        return True
    depth: dict[Value, int] = {}
    for node in nodes:
        depth[node] = 1 + max((depth.get(operand, 0) for operand in node._operands()), default=-1)
    return depth[root] > LONGEST_WHOLE and any(node._calls or node._scope is not None for node in nodes)


def _count(root: Value, enough: float = math.inf) -> int:
    """How many nodes there are. Where there are more than enough, counting may stop early.

    Unlike trace, this makes no Values of plain numbers, so the graph does not grow.
    """
    seen, numbers, stack = {root}, 0, [root]
    while stack and len(seen) + numbers <= enough:
        node = stack.pop()
        if node.is_leaf:
            continue
        primitive = node._primitive
        operands = node._x if primitive.variadic else (node._first, node._second)[: len(primitive.derivatives)]
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


def _picture(
    root: Value,
    nodes: list[Value],
    layers: int,
    format: str,  # noqa: A002
    rankdir: str,
    kind: Callable[..., Any],
    ways: dict[Value, str],
) -> Any:
    names = {node: f"value{number}" for number, node in enumerate(nodes)}
    picture = kind(
        "micrograd",
        format=format,
        graph_attr=graph_style(len(nodes), layers, format) | {"rankdir": rankdir},
        node_attr=NODE,
        edge_attr=EDGE,
    )
    gradients = {node: float(node.grad) for node in nodes}  # a Value after backward(create_graph=True)
    unreached = not root.is_leaf and not any(gradients[node] for node in nodes if not node.is_leaf)
    largest = max(abs(gradient) for gradient in (0.0, *gradients.values()) if math.isfinite(gradient))
    for node, gradient in reversed(gradients.items()):  # so Graphviz puts first operands on top
        draw_value(picture, node, names[node], gradient_row(gradient, largest, unreached), ways.get(node, ""))
    for node in nodes:
        if not node.is_leaf:
            draw_operation(picture, node, names, rankdir)
    notes = note_on_gradients(gradients.values()) if unreached else ""
    if any(operand not in names for node in nodes for operand in node._operands()):
        notes += f'<font color="{GREY}">{CUT} stands for operands that are not drawn.</font><br align="left"/>'
    if notes:
        picture.graph_attr["label"] = f"<{notes}>"
    return picture


# Texts


Value._repr_svg_ = svg_or_none
