"""The page of a topic's schemas, and messages that are shown by them."""

from __future__ import annotations

import json

import pytest

from .conftest import text_of
from .test_message_pages import orders

__all__ = ["orders"]

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "int"}]}
AVRO = {"format": "avro", "definition": json.dumps(ORDER), "message": "", "framing": "none"}
SCRIPT = b"<script>alert(1)</script>"


@pytest.fixture
def topic(instance, orders):
    return f"instances/{instance.id}/topics/orders"


def test_a_schema_is_given_looked_at_and_removed(at_alice, topic, orders):
    orders(0, b"\x04ab\x06")
    assert "Schemas" in text_of(at_alice.get(f"{topic}/messages"))
    saved = at_alice.post(f"{topic}/schemas/value", AVRO, follow=True)
    assert "Messages of orders are shown by the schema of their values." in text_of(saved)
    assert '{"id": "ab", "n": 3}' in text_of(saved)
    assert "&quot;Order&quot;" in at_alice.get(f"{topic}/schemas/value").content.decode()
    assert "Remove the schema" not in text_of(at_alice.get(f"{topic}/schemas/key"))
    gone = at_alice.post(f"{topic}/schemas/value", {"remove": "1"}, follow=True)
    assert "shown without a schema of their values" in text_of(gone)
    assert "Remove the schema" not in text_of(gone)


def test_a_message_is_opened_as_the_tree_that_its_schema_makes_of_it(at_alice, topic, orders):
    orders(0, bytes([2 * len(SCRIPT)]) + SCRIPT + b"\x06", key=b"\x04")
    at_alice.post(f"{topic}/schemas/value", AVRO)
    at_alice.post(f"{topic}/schemas/key", {**AVRO, "definition": '"int"'})
    page = at_alice.get(f"{topic}/messages/0/0")
    assert "<script>alert" not in page.content.decode()
    assert "<b>id</b>" in page.content.decode()
    assert 'aria-label="Key by its schema">2</pre>' in page.content.decode()
    assert "Bytes" in text_of(page)


def test_what_does_not_fit_is_said_and_shown_as_it_was(at_alice, topic, orders):
    orders(0, b"plain text")
    at_alice.post(f"{topic}/schemas/value", AVRO)
    assert "plain text" in text_of(at_alice.get(f"{topic}/messages"))
    page = text_of(at_alice.get(f"{topic}/messages/0/0"))
    assert (
        "The schema does not fit: it ends within a value of 54 bytes." in page or "The schema does not fit: it" in page
    )
    assert "plain text" in page


def test_a_schema_that_is_none_is_refused_beside_its_field_and_stays_there(at_alice, topic):
    page = at_alice.post(f"{topic}/schemas/value", {**AVRO, "definition": '{"type": "recrd"}'})
    assert page.status_code == 422
    assert "Is no Avro schema" in text_of(page)
    assert "recrd" in page.content.decode()
    proto = {**AVRO, "format": "protobuf", "definition": 'syntax = "proto3"; message A {}', "message": "B"}
    assert "Has no message B: it has A." in text_of(at_alice.post(f"{topic}/schemas/value", proto))


def test_a_viewer_reads_the_schema_and_changes_none(at_alice, at_viewer, topic):
    at_alice.post(f"{topic}/schemas/value", AVRO)
    page = at_viewer.get(f"{topic}/schemas/value")
    assert "You may look, but not change anything here." in text_of(page)
    assert "&quot;Order&quot;" in page.content.decode()
    assert at_viewer.post(f"{topic}/schemas/value", {"remove": "1"}).status_code == 403
    assert "There is none" in text_of(at_viewer.get(f"{topic}/schemas/key"))
