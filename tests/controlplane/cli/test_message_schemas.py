"""Schemas of a topic by the command line, and messages in words that people read."""

from __future__ import annotations

import pytest

PROTO = 'syntax = "proto3"; message Order { string id = 1; } message Line { int32 n = 1; }'


@pytest.fixture
def events(ok, instance):
    ok("topic", "create", instance.name, "orders", "--partitions", 1)
    return instance.name


def test_a_schema_is_tried_set_listed_and_deleted(ok, as_alice, events, instance, admin, tmp_path):
    file = tmp_path / "order.proto"
    file.write_text(PROTO)
    said = ("message", "schema", "set", events, "orders", "value", "--format", "protobuf", "--file", file)
    assert ok(*said, "--dry-run", "-o", "json").json["changes"]["format"] == [None, "protobuf"]
    assert ok("message", "schema", "list", events, "orders", "-o", "json").json["items"] == []
    assert ok(*said, "-o", "json").json["messages"] == ["Order", "Line"]
    admin.messages.write(f"{instance.id.removeprefix('ins-')}.orders", 0, b"\n\x02o7")
    assert '{"id": "o7"}' in ok("message", "list", events, "orders").out
    ok(*said, "--message", "Line", "--registry")
    assert "Line" in ok("message", "schema", "list", events, "orders").out
    assert as_alice(*said, "--message", "Lime").status != 0
    assert "without a schema" in ok("message", "schema", "delete", events, "orders", "value").err
    assert ok("message", "schema", "list", events, "orders", "-o", "json").json["items"] == []


def test_a_file_that_is_not_there_is_said(as_alice, events):
    found = as_alice("message", "schema", "set", events, "orders", "key", "--format", "avro", "--file", "/nowhere")
    assert (found.status, "No such file" in found.err) == (2, True)
