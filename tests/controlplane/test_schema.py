"""The published schema is current and says what the fixed table says; migrations match the models."""

from __future__ import annotations

import re

import pytest
import yaml
from django.core.management import call_command
from drf_spectacular.generators import SchemaGenerator

from controlplane.env import ROOT
from controlplane.organisations.obstacles import CODES

FIXED = {
    ("post", "/instances"): 202,
    ("get", "/operations/{operation_id}"): 200,
    ("get", "/instances/{instance_id}"): 200,
    ("patch", "/instances/{instance_id}"): 202,
    ("delete", "/instances/{instance_id}"): 202,
    ("put", "/instances/{instance_id}/whitelist"): 200,
    ("get", "/instances/{instance_id}/topics"): 200,
    ("post", "/instances/{instance_id}/topics"): 201,
    ("get", "/instances/{instance_id}/topics/{topic}"): 200,
    ("patch", "/instances/{instance_id}/topics/{topic}"): 200,
    ("delete", "/instances/{instance_id}/topics/{topic}"): 204,
    ("put", "/instances/{instance_id}/topics/{topic}/whitelist"): 200,
    ("get", "/instances/{instance_id}/groups"): 200,
    ("get", "/instances/{instance_id}/groups/{group}"): 200,
    ("post", "/instances/{instance_id}/groups/{group}/offsets"): 200,
    ("get", "/instances/{instance_id}/transactions"): 200,
    ("get", "/instances/{instance_id}/transactions/{transactional_id}"): 200,
    ("delete", "/instances/{instance_id}/transactions/{transactional_id}"): 204,
    ("get", "/instances/{instance_id}/acls"): 200,
    ("post", "/instances/{instance_id}/acls"): 201,
    ("delete", "/instances/{instance_id}/acls"): 200,
    ("post", "/instances/{instance_id}/access-check"): 200,
    ("get", "/instances/{instance_id}/users"): 200,
    ("post", "/instances/{instance_id}/users"): 201,
    ("delete", "/instances/{instance_id}/users"): 204,
    ("get", "/instances/{instance_id}/allocation"): 200,
    ("get", "/instances/{instance_id}/usage"): 200,
    ("get", "/instances/{instance_id}/bill"): 200,
    ("get", "/invoices"): 200,
    ("post", "/invoices/{number}/verify"): 200,
}


@pytest.fixture(scope="module")
def schema() -> dict:
    return SchemaGenerator().get_schema(request=None, public=True)


def test_the_committed_schema_is_current(tmp_path):
    call_command("spectacular", "--file", str(tmp_path / "openapi.yaml"), "--validate", "--fail-on-warn")
    committed = (ROOT / "docs" / "openapi.yaml").read_text()
    assert (tmp_path / "openapi.yaml").read_text() == committed, (
        "renew it: python manage.py spectacular --file docs/openapi.yaml"
    )


@pytest.mark.parametrize(("call", "status"), FIXED.items(), ids=str)
def test_every_call_of_the_fixed_table_is_in_it(schema, call, status):
    method, path = call
    responses = schema["paths"][f"/api/v1{path}"][method]["responses"]
    assert str(status) in responses
    assert "application/problem+json" in responses["default"]["content"]


def test_programs_read_in_a_refusal_the_same_codes_as_at_the_deletion_itself(schema):
    parts = schema["components"]["schemas"]
    codes = [parts[name]["properties"]["code"] for name in ("Obstacle", "InTheWay")]
    assert [each.get("$ref") or each["allOf"][0]["$ref"] for each in codes] == [
        "#/components/schemas/OrganisationObstacleEnum"
    ] * 2
    assert parts["OrganisationObstacleEnum"]["enum"] == list(CODES)
    assert "in the order of errors" in parts["Problem"]["properties"]["obstacles"]["description"]


FILE = re.compile(r"\w+\.(?:py|md|html|ya?ml)\b|\bdocs/|\btests/")
"""The name of a file of this repository: whoever reads the schema has none of them."""
SAID = frozenset({"description", "summary"})


def said(part):
    """Every text for people that is in a part of the schema."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name in SAID and isinstance(value, str):
                yield value
            else:
                yield from said(value)
    elif isinstance(part, list):
        for each in part:
            yield from said(each)


def test_no_text_sends_its_reader_to_a_file_that_only_the_developers_have(schema):
    texts = list(said(schema))
    assert len(texts) > 1000
    assert [text for text in texts if FILE.search(text)] == []


def test_operation_ids_are_unique(schema):
    ids = [operation["operationId"] for path in schema["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids))


def test_it_is_served_without_a_key(client):
    answer = client.get("/api/v1/schema")
    assert answer.status_code == 200
    assert yaml.safe_load(answer.content)["info"]["title"] == "Sluice"


def test_it_is_made_once_and_served_from_then_on(client, monkeypatch):
    first = client.get("/api/v1/schema").content
    monkeypatch.setattr(SchemaGenerator, "parse", None)
    assert client.get("/api/v1/schema").content == first
    with pytest.raises(TypeError):
        client.get("/api/v1/schema?version=2")  # another one: made anew


def test_no_migration_is_missing(db):
    call_command("makemigrations", "--check", "--dry-run")
