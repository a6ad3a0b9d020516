"""Pictures as text in Graphviz's language, for which nothing has to be installed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Source:
    """A graph in Graphviz's language: what layout.Picture takes, with nothing to lay it out.

    Attributes:
        body: its lines.

    Example:
        >>> graph = Source("sums", graph_attr={"rankdir": "LR"})
        >>> graph.node("a", "an operand")
        >>> graph.edge("a", "b")
        >>> print(graph.source, end="")
        digraph sums {
            graph [rankdir="LR"]
            a [label="an operand"]
            a -> b
        }
    """

    def __init__(
        self,
        name: str,
        *,
        format: str = "dot",  # noqa: A002  # the name that it has in graphviz
        graph_attr: Mapping[str, str] | None = None,
        node_attr: Mapping[str, str] | None = None,
        edge_attr: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.format = name, format
        self.graph_attr = dict(graph_attr or {})
        self.node_attr = dict(node_attr or {})
        self.edge_attr = dict(edge_attr or {})
        self.body: list[str] = []

    def node(self, name: str, label: str | None = None, **attributes: str) -> None:
        """Add a node; the name is an identifier."""
        self.body.append(name + _listed({"label": label, **attributes}))

    def edge(self, tail: str, head: str, **attributes: str) -> None:
        """Add an arrow between two nodes; ``node:port`` is a place at one."""
        self.body.append(f"{tail} -> {head}{_listed(attributes)}")

    @contextmanager
    def subgraph(self, *, name: str, graph_attr: Mapping[str, str]) -> Iterator[Source]:
        """A part of the graph, which is added when the block is over; Graphviz frames one named ``cluster...``."""
        part = Source(name, graph_attr=graph_attr)
        yield part
        lines = [f"graph{_listed(part.graph_attr)}", *part.body]
        self.body += [f"subgraph {name} {{", *(f"    {line}" for line in lines), "}"]

    @property
    def source(self) -> str:
        """The text."""
        usual = (("graph", self.graph_attr), ("node", self.node_attr), ("edge", self.edge_attr))
        lines = [f"{kind}{_listed(attributes)}" for kind, attributes in usual if attributes] + self.body
        return "".join([f"digraph {self.name} {{\n", *(f"    {line}\n" for line in lines), "}\n"])


def _listed(attributes: Mapping[str, str | None]) -> str:
    pairs = [f"{name}={_quoted(text)}" for name, text in attributes.items() if text is not None]
    return f" [{' '.join(pairs)}]" if pairs else ""


def _quoted(text: str) -> str:
    """A text as a string of the language; what stands between < and > is a table, and needs no quotes."""
    if text.startswith("<") and text.endswith(">"):
        return text
    return '"' + text.replace('"', '\\"') + '"'
