"""What the schema of a skops file says, as plain data: nothing of it is imported, called or made.

A schema is JSON. Each node names a class, and what skops is to make of its content:

    {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode", "content": [...]}

Of some twenty kinds, a pipeline that `micrograd train` wrote has nine. They become numbers, texts, lists, tuples,
dicts, slices and arrays, and Described for the rest; any other kind, and any other key in a node, is refused. For skops
the schema is written again without the numbers by which nodes refer to one another: so what skops reads is what was
looked at here, node by node.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd._support.archives import check_array, check_nodes, packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

SCHEMA = "schema.json"
_HEAD = {"__class__", "__module__", "__loader__"}
_ARRAYS = {"numpy.ndarray", "numpy.float64", "numpy.int64"}


@dataclass(frozen=True)
class Described:
    """An object, a class, a function or a dtype that a schema describes.

    Attributes:
        name: of the class of the object, or of the class or the function itself, with its module.
        fields: of the object by their names; of anything else none.
        loader: which kind of node it is.
    """

    name: str
    fields: Mapping[str, Any]
    loader: str = "ObjectNode"


def read_schema(data: bytes, trusted: Collection[str]) -> tuple[Any, bytes]:
    """What a skops file describes, and the same file written again for skops.

    Args:
        data: the file.
        trusted: the names of the classes and functions that may be in it, with their modules.

    Raises:
        ValueError: if it holds anything that a pipeline of ours has not, or more than it may.
        zipfile.BadZipFile: if it is no zip file.
    """
    parts = unpacked(data)
    text = parts.pop(SCHEMA, b"")
    check_nodes(text)
    for name, part in parts.items():
        check_array(name, part)
    schema = json.loads(text)
    versions = {"protocol": schema.pop("protocol", None), "_skops_version": schema.pop("_skops_version", None)}
    content = _Reader(parts, trusted).read(schema)
    written = json.dumps(_without_numbers(schema) | versions).encode()
    return content, packed({**parts, SCHEMA: written})


class _Reader:
    """Reads nodes; the parts of the file are the arrays that they name."""

    def __init__(self, parts: Mapping[str, bytes], trusted: Collection[str]) -> None:
        self._parts, self._trusted = parts, trusted
        self._kinds: dict[str, Callable[[dict[str, Any], str], Any]] = {
            "JsonNode": self._json,
            "ListNode": lambda node, name: self._sequence(node, name, "builtins.list"),
            "TupleNode": lambda node, name: tuple(self._sequence(node, name, "builtins.tuple")),
            "DictNode": self._dict,
            "SliceNode": self._slice,
            "NdArrayNode": self._array,
            "DTypeNode": self._dtype,
            "TypeNode": self._named,
            "FunctionNode": self._named,
            "ObjectNode": self._object,
        }

    def read(self, node: Any) -> Any:
        """What a node describes."""
        if not isinstance(node, dict) or not all(isinstance(node.get(key), str) for key in _HEAD):
            raise ValueError(f"its schema has {node!r:.80} for a node")
        name = f"{node['__module__']}.{node['__class__']}"
        if node["__loader__"] not in self._kinds:
            raise ValueError(f"types that are not trusted: {name}, as a {node['__loader__']}")
        return self._kinds[node["__loader__"]](node, name)

    def _json(self, node: dict[str, Any], name: str) -> Any:
        _check_keys(node, name, "builtins.str", "content", "is_json")
        found = json.loads(node["content"])
        if isinstance(found, (list, dict)):
            raise ValueError(f"its schema has {node['content']!r:.80} for a number or a text")
        return found

    def _sequence(self, node: dict[str, Any], name: str, expected: str) -> list[Any]:
        _check_keys(node, name, expected, "content")
        return list(map(self.read, _of_type(list, node["content"])))

    def _dict(self, node: dict[str, Any], name: str) -> dict[str, Any]:
        _check_keys(node, name, "builtins.dict", "content", "key_types")
        content = _of_type(dict, node["content"])
        if self.read(node["key_types"]) != [Described("builtins.str", {}, "TypeNode")] * len(content):
            raise ValueError("its schema has a dict whose keys are no texts")
        return {key: self.read(value) for key, value in content.items()}

    def _slice(self, node: dict[str, Any], name: str) -> slice:
        _check_keys(node, name, "builtins.slice", "content")
        content = _of_type(dict, node["content"])
        if content.keys() != {"start", "stop", "step"} or not all(
            type(content[key]) is int for key in ("start", "stop")
        ):
            raise ValueError(f"its schema has {content!r:.80} for a slice")
        return slice(content["start"], content["stop"], content["step"])

    def _array(self, node: dict[str, Any], name: str) -> Any:
        if name not in _ARRAYS:
            raise ValueError(f"types that are not trusted: {name}, as an array")
        if node.get("type") == "numpy":
            _check_keys(node, name, name, "type", "file")
            return np.load(io.BytesIO(self._parts[node["file"]]), allow_pickle=False)
        _check_keys(node, name, "numpy.ndarray", "type", "content", "shape")
        elements = list(map(self.read, _of_type(list, node["content"])))
        if node["type"] != "json" or self.read(node["shape"]) != (len(elements),):
            raise ValueError("its schema has an array of objects that is no vector")
        found = np.empty(len(elements), dtype=object)
        found[:] = elements
        return found

    def _dtype(self, node: dict[str, Any], name: str) -> Described:
        _check_keys(node, name, "numpy.dtype", "content")
        example = self.read(node["content"])
        if not isinstance(example, np.ndarray) or len(example):
            raise ValueError("its schema has a dtype that is described by no empty array")
        return Described(str(example.dtype), {}, "DTypeNode")

    def _object(self, node: dict[str, Any], name: str) -> Described:
        self._check_trusted(node, name)
        _check_keys(node, name, name, "content")
        return Described(name, _of_type(dict, self.read(node["content"])))

    def _named(self, node: dict[str, Any], name: str) -> Described:
        self._check_trusted(node, name)
        _check_keys(node, name, name)
        return Described(name, {}, node["__loader__"])

    def _check_trusted(self, node: dict[str, Any], name: str) -> None:
        if name not in self._trusted:
            raise ValueError(f"types that are not trusted: {name}, as a {node['__loader__']}")


def _check_keys(node: dict[str, Any], name: str, expected: str, *keys: str) -> None:
    """A node must be of a class, and have these keys besides those of every node."""
    if name != expected:
        raise ValueError(f"types that are not trusted: {name}, as a {node['__loader__']}")
    if odd := (node.keys() - {"__id__"}) ^ {*_HEAD, *keys}:
        raise ValueError(f"its schema has a {node['__loader__']} with or without {', '.join(sorted(odd))!r:.80}")


def _of_type(kind: type, content: Any) -> Any:
    if type(content) is not kind:
        raise ValueError(f"its schema has {content!r:.80} for a {kind.__name__}")
    return content


def _without_numbers(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_numbers(value) for key, value in node.items() if key != "__id__"}
    return list(map(_without_numbers, node)) if isinstance(node, list) else node
