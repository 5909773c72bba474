"""The audit trail as CSV: by REST, from the page, and on the command line."""

from __future__ import annotations

import csv
import io
import json

import pytest

from controlplane.core import audit_file, audit_sealing

from .console.conftest import at_alice, at_charlie, at_viewer  # noqa: F401  # fixtures
from .test_audit_trail import URL as LIST
from .test_audit_trail import deleted_before_and_created_after, record
from .test_instances_api import problem

URL = f"{LIST}.csv"


def read(answer):
    assert answer.status_code == 200
    assert answer.streaming
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"] == 'attachment; filename="audit.csv"'
    assert answer["X-Content-Type-Options"] == "nosniff"
    return list(csv.DictReader(io.StringIO(answer.getvalue().decode(), newline="")))


def targets(rows):
    return [row["target"] for row in rows if row["action"].startswith("topic")]


def test_it_says_what_the_list_says(alice):
    detail = {"config": {"retention.ms": {"from": "1", "to": None}}, "note": 'ünï "quoted"\nline'}
    record(alice, target="ins-a/orders, late", detail=detail)
    audit_sealing.extend(alice.organisation.pk)
    rows, listed = read(alice.api.get(URL)), alice.api.get(LIST).json()["items"]
    assert len(rows) == len(listed) > 1
    for row, entry in zip(rows, listed, strict=True):
        assert json.loads(row.pop("detail")) == entry.pop("detail")
        assert bool(row.pop("before")) == (entry.pop("before") is not None), "as text for people"
        assert bool(row.pop("after")) == (entry.pop("after") is not None)
        assert (entry.pop("time"), entry.pop("object"), entry.pop("source")) == (
            row["at"],
            row["target"],
            row["address"],
        )
        assert row == {name: str(value) for name, value in entry.items()}


def test_it_is_whole_however_many_are_read_at_once_and_without_what_comes_meanwhile(alice, monkeypatch):
    monkeypatch.setattr(audit_file, "AT_ONCE", 3)
    for number in range(10):
        record(alice, target=f"t{number}")
    answer = alice.api.get(URL, {"action": "topic"})
    pieces = iter(answer)
    first = next(pieces).decode()
    record(alice, target="meanwhile")
    rows = list(csv.DictReader(io.StringIO(first + b"".join(pieces).decode(), newline="")))
    assert first.count("\n") == 4, "some at a time"
    assert targets(rows) == [f"t{number}" for number in reversed(range(10))]


@pytest.mark.parametrize("number", [0, 3, 6])
def test_it_ends_where_a_piece_does(alice, monkeypatch, number):
    monkeypatch.setattr(audit_file, "AT_ONCE", 3)
    for each in range(number):
        record(alice, "topic.create", f"t{each}")
    assert len(read(alice.api.get(URL, {"action": "topic"}))) == number


def test_it_has_the_filters_of_the_list(alice):
    day_ago = deleted_before_and_created_after(alice)
    for query, found in (
        ({"action": "topic"}, ["payments", "orders"]),
        ({"action": "topic.delete"}, ["orders"]),
        ({"target": "payments"}, ["payments"]),
        ({"actor": "bob@example.com"}, []),
        ({"action": "topic", "from": day_ago}, ["payments"]),
        ({"action": "topic", "to": day_ago}, ["orders"]),
    ):
        assert targets(read(alice.api.get(URL, query))) == found
    for query in ({"from": "yesterday"}, {"actor": "a\0b"}):
        assert problem(alice.api.get(URL, query), 400, "invalid")["errors"][0]["field"] == next(iter(query))


@pytest.mark.parametrize("target", ["=1+1", "-2", "+3", "@sum", "\t=1", " =1", "＝1"])  # noqa: RUF001
def test_a_spreadsheet_computes_nothing(alice, target):
    record(alice, target=target)
    assert targets(read(alice.api.get(URL))) == [f"'{target}"]


def test_others_are_told_nothing(alice, charlie, client):
    record(alice)
    assert targets(read(charlie.api.get(URL))) == []
    assert client.get(URL).status_code == 401


def test_the_page_leads_to_what_it_shows(alice, at_alice, at_viewer, at_charlie):  # noqa: F811
    record(alice, target="ins-a/orders")
    record(alice, target="ins-a/payments")
    path = at_alice.address("audit")
    assert f'href="{path}.csv"' in at_alice.get("audit").content.decode()
    page = at_alice.get("audit?q=payments&page=1").content.decode()
    assert f'href="{path}.csv?q=payments"' in page
    assert targets(read(at_alice.client.get(f"{path}.csv?q=payments"))) == ["ins-a/payments"]
    assert targets(read(at_viewer.client.get(f"{path}.csv"))) == ["ins-a/payments", "ins-a/orders"]
    assert at_charlie.client.get(f"{path}.csv").status_code == 404
