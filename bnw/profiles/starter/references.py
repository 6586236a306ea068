"""Where the references of one JSON Schema lead, within that schema only.

A schema may name parts of itself in three ways: by pointer (`#/$defs/x`), by anchor (`#x`), and by the identifier of a
schema embedded in it (`$id`). All of them are looked up here in an index built once. A reference that leads outside
finds nothing; nothing is ever fetched.
"""

from __future__ import annotations

from urllib.parse import unquote, urldefrag, urljoin

from bnw.profiles.json_reader import JsonValue
from bnw.profiles.pointer import token

Schema = dict[str, JsonValue] | bool
_BASE = "bnw:schema"


class References:
    """An index of the schema `root`; places in it are JSON pointers as text."""

    def __init__(self, root: Schema) -> None:
        self._nodes: dict[str, JsonValue] = {}
        self._bases: dict[str, str] = {}
        self._resources: dict[str, str] = {_BASE: ""}
        self._anchors: dict[tuple[str, str], str] = {}
        self._index(root)

    def schema_at(self, place: str) -> Schema | None:
        node = self._nodes.get(place)
        return node if isinstance(node, dict | bool) else None

    def resolve(self, reference: str, place: str) -> str | None:
        """The place that `reference`, found in the schema at `place`, leads to."""
        base = self._bases.get(place, _BASE)
        target, fragment = urldefrag(reference if base == _BASE else urljoin(base, reference))
        if not target:
            target = base
        start = self._resources.get(target)
        if start is None:
            return None
        if not fragment:
            return start
        fragment = unquote(fragment)
        if fragment.startswith("/"):
            found = start + fragment
            return found if found in self._nodes else None
        return self._anchors.get((target, fragment))

    def _index(self, root: Schema) -> None:
        stack: list[tuple[str, JsonValue, str]] = [("", root, _BASE)]
        while stack:
            place, node, base = stack.pop()
            self._nodes[place] = node
            if isinstance(node, dict):
                name = node.get("$id")
                if isinstance(name, str):
                    base = urldefrag(name if base == _BASE else urljoin(base, name))[0] or base
                    self._resources.setdefault(base, place)
                for keyword in ("$anchor", "$dynamicAnchor"):
                    anchor = node.get(keyword)
                    if isinstance(anchor, str):
                        self._anchors.setdefault((base, anchor), place)
                stack.extend((place + token(key), child, base) for key, child in node.items())
            elif isinstance(node, list):
                stack.extend((place + token(index), child, base) for index, child in enumerate(node))
            self._bases[place] = base
