"""What notebooks show of networks and trainings: small HTML, made of plain data, which needs nothing but itself."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDTH, HEIGHT, LEFT, BOTTOM = 420, 160, 56, 24
LETTER = 7.2  # how wide a letter of 11 pixels is, at most: the digits of DejaVu Sans, wider than those of Arial
MOST_POINTS = 400
MOST_ROWS = 30


def parameter_table(name: str, parameters: Iterable[tuple[str, float]]) -> str:
    """A table of a network's parameters: how many there are, and between what numbers, layer by layer.

    Args:
        name: of the network.
        parameters: the name of each, such as ``layers.1.neurons.0.b``, and its number.

    Example:
        >>> "<td>layers.1</td><td>2</td><td>-1 to 0.5</td>" in parameter_table(
        ...     "MLP", [("layers.1.w.0", 0.5), ("layers.1.b", -1.0)]
        ... )
        True
    """
    groups: dict[str, list[float]] = {}
    for path, number in parameters:
        first, *rest = path.split(".")
        group = f"{first}.{rest[0]}" if rest and rest[0].isdigit() else first
        groups.setdefault(group, []).append(number)
    rows = [
        f"<tr><td>{_shown(group)}</td><td>{len(numbers):,}</td><td>{min(numbers):.4g} to {max(numbers):.4g}</td></tr>"
        for group, numbers in list(groups.items())[:MOST_ROWS]
    ]
    if len(groups) > MOST_ROWS:
        rows.append(f"<tr><td>and {len(groups) - MOST_ROWS:,} more</td><td></td><td></td></tr>")
    count = sum(map(len, groups.values()))
    head = "<tr><th>name</th><th>parameters</th><th>numbers</th></tr>"
    caption = f"<caption>{_shown(name)}: {count:,} parameter{'s' * (count != 1)}</caption>"
    return f"<table>{caption}<thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def loss_chart(description: str, losses: Sequence[float], unit: str) -> str:
    """A loss as a curve; the description alone where there are no two points.

    Args:
        description: what the picture is of, for those who do not see it.
        losses: one number after the other.
        unit: what a loss is of: "epoch" or "step".

    Example:
        >>> loss_chart("a training of one step", [0.5], "step")
        '<p>a training of one step</p>'
    """
    stride = math.ceil(len(losses) / MOST_POINTS) or 1
    ends = (1, len(losses))
    points = [(place, loss) for place, loss in enumerate(losses, 1) if place % stride == 0 or place in ends]
    if len(points) < 2:
        return f"<p>{escape(description)}</p>"
    least, most = min(loss for _, loss in points), max(loss for _, loss in points)
    logarithmic = least > 0 and most / least > 30  # it spans more than a decade and a half
    labels = f"{most:.4g}", f"{least:.4g}"
    left = max(LEFT, round(10 + LETTER * max(map(len, labels))))

    def height_of(loss: float) -> float:
        if logarithmic:
            share = (math.log(loss) - math.log(least)) / (math.log(most) - math.log(least))
        else:
            share = (loss - least) / (most - least or 1.0)
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - 10)

    def place_of(place: int) -> float:
        return left + (place - 1) / (len(losses) - 1) * (WIDTH - left - 8)

    path = "L".join(f"{place_of(place):.1f} {height_of(loss):.1f}" for place, loss in points)
    style = 'fill="currentColor" font-size="11" font-family="sans-serif"'
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" style="max-width:100%;height:auto" '
        f'role="img" aria-label="{escape(description)}">'
        f'<path d="M{left} 6V{HEIGHT - BOTTOM}H{WIDTH}" fill="none" stroke="currentColor" stroke-opacity="0.3"/>'
        f'<path d="M{path}" fill="none" stroke="#0072b2" stroke-width="2"/>'
        f'<text x="{left - 6}" y="14" text-anchor="end" {style}>{labels[0]}</text>'
        f'<text x="{left - 6}" y="{HEIGHT - BOTTOM}" text-anchor="end" {style}>{labels[1]}</text>'
        f'<text x="{left}" y="{HEIGHT - 6}" {style}>loss{", on a logarithmic scale" if logarithmic else ""}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT - 6}" text-anchor="end" {style}>{unit} {len(losses):,}</text></svg>'
    )


def _shown(text: str) -> str:
    return escape(text.encode("utf-8", "backslashreplace").decode())
