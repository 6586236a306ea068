"""Random JSON Schemas of the kind that people write, from a seed: for the starter documents' property test."""

from __future__ import annotations

from random import Random
from typing import Any

FORMATS = (
    "date-time",
    "date",
    "time",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "uuid",
    "json-pointer",
)
PATTERNS = (
    "^[a-z]+$", "^[A-Z]{3}$", r"^\d{4}-\d{2}$", "^(red|green|blue)$", "^[^/]+/[^/]+$", r"^v\d+(\.\d+){2}$", "x",
    r"^\+?\d{6,12}$",
    r"^[\w.-]+@[\w-]+\.[a-z]{2,}$", "^#(?:[0-9a-f]{3}){1,2}$", r"^(?=.*\d)(?=.*[a-z]).{6,}$", r"^(['\"]).*\1$",
    r"^\u00e9+$",
    r"^\p{Lu}\p{L}*$", "^[A-Za-z0-9+/]{4}=*$", "^(?!admin)[a-z]+$", "",
)  # fmt: skip
NAMES = ("name", "size", "kind", "items", "note", "type", "a/b", "x y", "é", "$ref")


class SchemaMaker:
    """Makes one schema after the other."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def make(self) -> Any:
        """A schema of up to four levels, with definitions that it may refer to and that may be recursive."""
        schema = self._schema(4)
        if not isinstance(schema, dict):
            return schema
        if self._chance(0.5):
            schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
        schema["$defs"] = {
            "leaf": self._schema(1),
            "tree": {
                "type": "object",
                "required": self._some(["left", "value"]),
                "properties": {
                    "left": self.random.choice(
                        [{"$ref": "#/$defs/tree"}, {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}]
                    ),
                    "value": {"$ref": "#/$defs/leaf"},
                },
            },
            "named": {"$anchor": "named", "type": "string", "minLength": self.random.randrange(5)},
        }
        return schema

    def _schema(self, depth: int) -> Any:
        if self._chance(0.03):
            return self.random.choice([True, True, True, False])
        makers = [self._string, self._number, self._any_of, self._constant, self._reference, self._boolean]
        if depth > 0:
            makers = [self._object, self._object, self._object, self._array, self._combined, *makers]
        schema = self.random.choice(makers)(depth - 1)
        if self._chance(0.1):
            schema["title"] = "A title"
        if self._chance(0.08):
            schema["default"] = self.random.choice([None, 0, "", "x", [], {}])
        if self._chance(0.08):
            schema["examples"] = [self.random.choice(["example", 42, {"name": "x"}])]
        return schema

    def _object(self, depth: int) -> dict[str, Any]:
        names = self._some(NAMES)[:4]
        schema: dict[str, Any] = {"type": "object", "properties": {name: self._schema(depth) for name in names}}
        required = self._some(names)
        if self._chance(0.15):
            required = [*required, "other"]
        if required or self._chance(0.3):
            schema["required"] = required
        if self._chance(0.4):
            schema["additionalProperties"] = self.random.choice([False, False, {"type": "string"}])
        if self._chance(0.1):
            schema["minProperties"] = self.random.randrange(4)
        if self._chance(0.1):
            schema["patternProperties"] = {"^x-": {"type": "integer"}}
        if self._chance(0.1):
            schema["propertyNames"] = {"maxLength": 6}
        if names and self._chance(0.1):
            schema["dependentRequired"] = {names[0]: [self.random.choice(NAMES)]}
        if names and self._chance(0.1):
            schema["if"] = {"properties": {names[0]: self._schema(0)}, "required": [names[0]]}
            schema["then"] = {"required": ["then"]}
            schema["else"] = {"required": ["else"]}
        return schema

    def _array(self, depth: int) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "array"}
        if self._chance(0.8):
            schema["items"] = self._schema(depth)
        if self._chance(0.5):
            schema["minItems"] = self.random.randrange(5)
        if self._chance(0.3):
            schema["maxItems"] = schema.get("minItems", 0) + self.random.randrange(3)
        if self._chance(0.3):
            schema["uniqueItems"] = True
        if self._chance(0.15):
            schema["prefixItems"] = [self._schema(depth) for _ in range(self.random.randrange(1, 3))]
        if self._chance(0.1):
            schema["contains"] = self._schema(0)
        return schema

    def _string(self, _: int) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "string"}
        way = self.random.randrange(4)
        if way == 0:
            schema["format"] = self.random.choice(FORMATS)
        elif way == 1:
            schema["pattern"] = self.random.choice(PATTERNS)
        if self._chance(0.3):
            schema["minLength"] = self.random.randrange(12)
        if self._chance(0.2):
            schema["maxLength"] = schema.get("minLength", 0) + self.random.randrange(30)
        return schema

    def _number(self, _: int) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": self.random.choice(["integer", "number"])}
        low = self.random.choice([-1000, -1, 0, 0.5, 1, 7, 99.9, 10**9])
        if self._chance(0.5):
            schema[self.random.choice(["minimum", "exclusiveMinimum"])] = low
        if self._chance(0.4):
            schema[self.random.choice(["maximum", "exclusiveMaximum"])] = low + self.random.choice([0.5, 1, 5, 100])
        if self._chance(0.2):
            schema["multipleOf"] = self.random.choice([1, 2, 3, 0.5, 0.25, 10])
        return schema

    def _boolean(self, _: int) -> dict[str, Any]:
        return {"type": self.random.choice(["boolean", "null", ["string", "null"], ["integer", "boolean"]])}

    def _constant(self, _: int) -> dict[str, Any]:
        return self.random.choice(
            [{"const": "fixed"}, {"const": None}, {"enum": ["a", "b", 3]}, {"enum": [{"k": [1]}, None]}]
        )

    def _reference(self, _: int) -> dict[str, Any]:
        return {"$ref": self.random.choice(["#/$defs/leaf", "#/$defs/tree", "#/$defs/tree", "#named"])}

    def _any_of(self, depth: int) -> dict[str, Any]:
        branches = [self._schema(max(depth, 0)) for _ in range(self.random.randrange(1, 4))]
        return {self.random.choice(["anyOf", "oneOf"]): branches}

    def _combined(self, depth: int) -> dict[str, Any]:
        """Schemas that speak of the same object together."""
        base = self._object(depth)
        way = self.random.randrange(3)
        if way == 0:
            base.pop("additionalProperties", None)
            return {"allOf": [base, {"required": ["kind"], "properties": {"kind": {"type": "string"}}}]}
        if way == 1:
            return {**base, "not": {"required": ["forbidden"]}}
        return {**base, "anyOf": [{"required": [name]} for name in base["properties"]] or [True]}

    def _some(self, names: Any) -> list[Any]:
        return [name for name in names if self._chance(0.5)]

    def _chance(self, share: float) -> bool:
        return self.random.random() < share
