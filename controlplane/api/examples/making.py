"""An example of each body and answer of the published document, put there by `examples_postprocess` (drf-spectacular's hook).

Bodies are written by hand (`bodies`). Answers follow from their schemas: a member holds what `words` says of its name, in the
limits that its schema has. Where a view has said examples of its own, they stand.
"""

from __future__ import annotations

from typing import Any

from controlplane.api.examples.bodies import BODIES
from controlplane.api.examples.words import (
    ANSWERS,
    FORMATS,
    MAPS,
    NONE,
    NUMBERS,
    OTHER_NUMBER,
    TEXTS,
    TRUE,
)

Schema = dict[str, Any]

JSON, PROBLEM = "application/json", "application/problem+json"
UNNAMED = "…"
"""A text of which no word is known: none is published so."""
DEEPEST = 12
PREFIX = "#/components/schemas/"


def examples_postprocess(result: dict[str, Any], **_context: Any) -> dict[str, Any]:
    """The document with an example of every body and of every answer that is no problem and no file of bytes."""
    schemas: dict[str, Schema] = result["components"]["schemas"]
    for path, item in result["paths"].items():
        for operation in item.values() if "/api/" in path else ():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                _give(content, _body(content["schema"], schemas))
            for answer in operation["responses"].values():
                for media_type, content in answer.get("content", {}).items():
                    _give(content, _answer(media_type, content.get("schema", {}), schemas))
    return result


def _give(content: dict[str, Any], example: Any) -> None:
    if example is not None and "examples" not in content:
        content["example"] = example


def _body(schema: Schema, schemas: dict[str, Schema]) -> Any:
    name = schema.get("$ref", "").removeprefix(PREFIX)
    return BODIES.get(name) or made(schema, schemas)


def _answer(media_type: str, schema: Schema, schemas: dict[str, Schema]) -> Any:
    if media_type == JSON:
        return made(schema, schemas)
    if media_type == PROBLEM:
        return None
    return next((text for start, text in ANSWERS.items() if media_type.startswith(start)), None)


def made(schema: Schema, schemas: dict[str, Schema], name: str = "", depth: int = 0) -> Any:
    """One thing that keeps to a schema; `name`: of the member that holds it."""
    if "$ref" in schema:
        return made(schemas[schema["$ref"].removeprefix(PREFIX)], schemas, name, depth + 1)
    if (schema.get("nullable") and name in NONE) or depth > DEEPEST:
        return None
    for choice in ("allOf", "oneOf", "anyOf"):
        if choice in schema:
            return made(_first(schema[choice], schemas), schemas, name, depth + 1)
    if "enum" in schema:
        words = [word for word in schema["enum"] if word is not None]
        return TEXTS[name] if TEXTS.get(name) in words else next((word for word in words if word != ""), words[0])
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        return _object(schema, schemas, name, depth)
    if kind == "array":
        found = made(schema.get("items", {}), schemas, name, depth + 1)
        return [found] * max(1, schema.get("minItems", 1)) if schema.get("maxItems", 1) else []
    if kind in ("integer", "number"):
        return _number(schema, name)
    if kind == "boolean":
        return name in TRUE
    return _text(schema, name) if kind == "string" else TEXTS.get(name, OTHER_NUMBER)


def _first(choices: list[Schema], schemas: dict[str, Schema]) -> Schema:
    """The first that says something: of a choice that may be left out another one stands for null."""
    for choice in choices:
        named = choice.get("$ref", "").removeprefix(PREFIX)
        if named not in ("NullEnum", "BlankEnum"):
            return choice
    return schemas[choices[0]["$ref"].removeprefix(PREFIX)]


def _object(schema: Schema, schemas: dict[str, Schema], name: str, depth: int) -> dict[str, Any]:
    properties = schema.get("properties")
    if not properties:
        return dict(MAPS.get(name, {}))
    required = schema.get("required", properties)
    return {
        member: made(shape, schemas, member, depth + 1)
        for member, shape in properties.items()
        if not shape.get("writeOnly") and (member in required or not shape.get("nullable"))
    }


def _number(schema: Schema, name: str) -> Any:
    number: float = next((value for end, value in NUMBERS if name.endswith(end)), OTHER_NUMBER)
    least, most = schema.get("minimum"), schema.get("maximum")
    number = number if most is None else min(number, most)
    return number if least is None else max(number, least)


def _text(schema: Schema, name: str) -> str:
    if schema.get("format") in FORMATS:
        return str(FORMATS[schema["format"]])
    text = str(TEXTS.get(name, UNNAMED))
    return text[: schema["maxLength"]] if "maxLength" in schema else text
