"""Examples of the published schema: each body and each answer has one, and it keeps to its schema."""

from __future__ import annotations

import json
from functools import cache

import jsonschema
import pytest
from drf_spectacular.generators import SchemaGenerator

from controlplane.api.examples.bodies import BODIES
from controlplane.api.examples.making import UNNAMED, examples_postprocess

JSON = "application/json"
METHODS = ("get", "post", "put", "patch", "delete")


@cache
def document():
    return SchemaGenerator().get_schema(request=None, public=True)


def operations():
    for path, item in document()["paths"].items():
        for method in METHODS:
            if method in item and path.startswith("/api/"):
                yield method, path, item[method]


def contents():
    """Each body and answer that is JSON: where it stands, and what the document says of it."""
    for method, path, operation in operations():
        for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
            yield f"{method} {path}", media_type, content
        for status, answer in operation["responses"].items():
            for media_type, content in answer.get("content", {}).items():
                yield f"{method} {path} {status}", media_type, content


def plain(schema):
    """JSON Schema of what OpenAPI 3.0 says: `nullable` and an exclusive bound that is true are words of its own."""
    if isinstance(schema, list):
        return [plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        name: plain(value) for name, value in schema.items() if name not in ("nullable", "discriminator", "example")
    }
    if found.get("exclusiveMinimum") is True:
        found["exclusiveMinimum"] = found.pop("minimum")
    if found.get("exclusiveMaximum") is True:
        found["exclusiveMaximum"] = found.pop("maximum")
    return {"anyOf": [found, {"type": "null"}]} if schema.get("nullable") is True else found


@cache
def components():
    return plain(document()["components"])


def judged(schema, example):
    validator = jsonschema.Draft202012Validator({**plain(schema), "components": components()})
    return [f"{'.'.join(map(str, error.path))}: {error.message[:200]}" for error in validator.iter_errors(example)]


def examples_in(content):
    if "example" in content:
        return [content["example"]]
    return [each["value"] for each in content.get("examples", {}).values()]


def test_every_body_and_answer_in_json_has_an_example():
    assert [where for where, media_type, content in contents() if media_type == JSON and not examples_in(content)] == []


def test_every_change_that_takes_a_body_has_one():
    changes = [operation for method, _, operation in operations() if method != "get" and "requestBody" in operation]
    assert len(changes) > 70
    for operation in changes:
        assert examples_in(operation["requestBody"]["content"][JSON]), operation["operationId"]


def test_examples_keep_to_their_schemas():
    wrong = {}
    for where, media_type, content in contents():
        for example in examples_in(content) if media_type == JSON else ():
            found = judged(content["schema"], json.loads(json.dumps(example, default=str)))
            if found:
                wrong[where] = found
    assert wrong == {}


def texts(example):
    if isinstance(example, dict):
        for name, value in example.items():
            yield from ((name, text) for _, text in texts(value))
            if isinstance(value, str):
                yield name, value
    elif isinstance(example, list):
        for each in example:
            yield from [("", each)] if isinstance(each, str) else texts(each)


def test_no_text_in_an_example_is_without_a_word():
    unnamed = {
        f"{where}: {name}" for where, _, content in contents() for each in examples_in(content) for name, text in texts(each)
        if text == UNNAMED
    }  # fmt: skip
    assert unnamed == set()


def test_bodies_are_of_requests_that_there_are():
    assert set(BODIES) <= set(document()["components"]["schemas"])


@pytest.mark.parametrize(
    ("schema", "example"),
    [
        ({"type": "integer", "minimum": 7}, 7),
        ({"type": "integer", "maximum": 1}, 1),
        ({"type": "string", "enum": ["", "b"]}, "b"),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 2}, [False, False]),
        ({"type": "string", "maxLength": 0}, ""),
        ({"allOf": [{"$ref": "#/components/schemas/Word"}], "nullable": True}, "only"),
    ],
)
def test_an_example_is_within_the_limits_of_its_schema(schema, example):
    answer = {"content": {JSON: {"schema": schema}}}
    made = examples_postprocess(
        {
            "components": {"schemas": {"Word": {"type": "string", "enum": ["only"]}}},
            "paths": {"/api/v1/x": {"get": {"responses": {"200": answer}}}},
        }
    )
    assert made["paths"]["/api/v1/x"]["get"]["responses"]["200"]["content"][JSON]["example"] == example
