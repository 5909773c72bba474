"""The audit trail as a chain: what was changed, taken out or slipped in is named, by REST and by operators' command."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.migrations.executor import MigrationExecutor

from controlplane.core import audit, audit_sealing
from controlplane.core.audit_chain import FIRST, Link, chained, entry_hash, followed
from controlplane.core.models import AuditChain, AuditEntry
from tests.controlplane.test_instances_api import problem

URL = "/api/v1/audit/verify"
AT = datetime(2026, 11, 26, 22, 10, 0, 123456, tzinfo=UTC)


def entry(**other):
    return SimpleNamespace(
        **{
            "pk": 7, "organisation_id": "org-000000000001", "number": None, "hash": "", "actor": "alice@example.com",
            "action": "topic.create", "target": "ins-a/orders", "detail": {"b": 1, "a": "ü"}, "at": AT,
            "request_id": "r", "address": "10.0.0.7", "key": "key-1",
        }
        | other
    )  # fmt: skip


def rows(person):
    return AuditEntry.objects.for_organisation(person.organisation)


def written(person, count=3):
    """So many entries more, chained as a commit would."""
    for number in range(count):
        audit.record(
            organisation=person.organisation, actor="alice@example.com", action="topic.create", target=f"t{number}"
        )
    audit_sealing.extend(person.organisation.pk)
    return rows(person).count()


def asked(person, **query):
    answer = person.api.get(URL, query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def broken(person, **query):
    found = asked(person, **query)["broken"]
    return found and (found["number"], found["code"])


# --- the rule -------------------------------------------------------------------------------------------------------------


def test_a_hash_is_of_the_documented_json():
    text = (
        '{"action":"topic.create","actor":"alice@example.com","address":"10.0.0.7","at":"2026-11-26T22:10:00.123456Z",'
        '"chain":1,"detail":{"a":"\\u00fc","b":1},"id":7,"key":"key-1","number":1,"organisation":"org-000000000001",'
        f'"previous_hash":"{FIRST}","request_id":"r","target":"ins-a/orders"}}'
    )
    assert entry_hash(entry(), number=1, previous_hash=FIRST) == hashlib.sha256(text.encode()).hexdigest()


def test_a_moment_is_the_same_in_every_zone():
    elsewhere = entry(at=AT.astimezone(timezone(timedelta(hours=8))))
    assert entry_hash(elsewhere, number=1, previous_hash=FIRST) == entry_hash(entry(), number=1, previous_hash=FIRST)


@pytest.mark.parametrize(
    "other",
    [
        {"pk": 8}, {"organisation_id": "org-2"}, {"actor": "eve"}, {"action": "x"}, {"target": "x"}, {"detail": {}},
        {"at": AT + timedelta(microseconds=1)}, {"request_id": ""}, {"address": ""}, {"key": ""},
    ],
)  # fmt: skip
def test_it_covers_all_that_an_entry_says(other):
    known = entry_hash(entry(), number=2, previous_hash="a" * 64)
    assert entry_hash(entry(**other), number=2, previous_hash="a" * 64) != known
    assert entry_hash(entry(), number=3, previous_hash="a" * 64) != known
    assert entry_hash(entry(), number=2, previous_hash="b" * 64) != known


def test_a_chain_is_followed_as_far_as_it_is_whole():
    found = [entry(pk=number) for number in range(5)]
    end = chained(found, Link())
    assert [each.number for each in found] == [1, 2, 3, 4, 5]
    assert followed(found, Link()) == (end, None)
    assert followed(found[3:], Link(3, found[2].hash)) == (end, None)
    last, fault = followed([*found[:2], *found[3:]], Link())
    assert (last, fault.number, fault.id, fault.code) == (Link(2, found[1].hash), 3, None, "missing")
    found[2].target = "another"
    last, fault = followed(found, Link())
    assert (last.number, fault.number, fault.id, fault.code) == (2, 3, 2, "changed")


# --- sealing --------------------------------------------------------------------------------------------------------------


def test_a_commit_chains_what_it_has_written(alice, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        record = audit.record(organisation=alice.organisation, actor="a", action="x.y", target="t")
        assert rows(alice).get(pk=record.pk).number is None
    record = rows(alice).get(pk=record.pk)
    assert record.number == rows(alice).count()
    assert len(record.hash) == 64
    chain = AuditChain.objects.for_organisation(alice.organisation).get()
    assert (chain.number, chain.hash) == (record.number, record.hash)


def test_a_chain_that_cannot_be_added_to_fails_no_change(
    alice, django_capture_on_commit_callbacks, monkeypatch, caplog
):
    def away(_organisation_id):
        raise DatabaseError("locked")

    monkeypatch.setattr(audit_sealing, "extend", away)
    with django_capture_on_commit_callbacks(execute=True):
        assert alice.api.post("/api/v1/api-keys", {"name": "x"}).status_code == 201
    assert "locked" in caplog.text
    monkeypatch.undo()
    assert audit_sealing.extend_all() == rows(alice).count()
    assert broken(alice) is None


def test_the_worker_chains_what_is_left_whatever_is_wrong_with_others(alice, charlie, caplog):
    written(alice)
    written(charlie)
    AuditChain.objects.for_organisation(alice.organisation).update(number=1)  # the next number is taken
    for person in (alice, charlie):
        audit.record(organisation=person.organisation, actor="a", action="x.y", target="late")
    assert audit_sealing.extend_all() == 1
    assert f"the audit trail of {alice.organisation.pk} cannot be chained" in caplog.text
    assert (asked(alice)["waiting"], asked(charlie)["waiting"]) == (1, 0)


def test_many_are_chained_in_portions(alice, monkeypatch):
    monkeypatch.setattr(audit_sealing, "AT_ONCE", 2)
    count = written(alice, 5)
    assert list(rows(alice).order_by("pk").values_list("number", flat=True)) == list(range(1, count + 1))
    assert broken(alice) is None


def test_no_number_is_given_twice(alice):
    written(alice)
    with pytest.raises(IntegrityError), transaction.atomic():
        rows(alice).filter(number=2).update(number=1)


def test_an_entry_is_neither_changed_nor_deleted_by_us(alice):
    found = rows(alice).first()
    with pytest.raises(TypeError, match="never changed"):
        found.save()
    with pytest.raises(TypeError, match="never deleted"):
        found.delete()


# --- verifying ------------------------------------------------------------------------------------------------------------


def test_a_whole_trail_is_said_to_be(alice, viewer):
    count = written(alice)
    newest = rows(alice).get(number=count)
    for person in (alice, viewer):
        assert asked(person) == {
            "checked": count, "last": {"number": count, "hash": newest.hash}, "newest": count, "waiting": 0,
            "next": None, "broken": None,
        }  # fmt: skip


def test_one_of_which_nothing_is_chained_yet_is_whole_and_waits(alice):
    found = asked(alice)
    assert (found["checked"], found["last"], found["next"]) == (0, {"number": 0, "hash": FIRST}, None)
    assert found["waiting"] == rows(alice).count() > 0


@pytest.mark.parametrize(
    "change",
    [
        {"actor": "eve@example.com"}, {"detail": {"made": "up"}}, {"at": AT}, {"address": "10.9.9.9"}, {"hash": "f" * 64},
    ],
)  # fmt: skip
def test_what_was_changed_is_named(alice, change):
    written(alice)
    rows(alice).filter(number=3).update(**change)
    found = asked(alice)
    assert (found["broken"]["number"], found["broken"]["code"]) == (3, "changed")
    assert found["broken"]["id"] == rows(alice).get(number=3).pk
    assert found["last"]["number"] == found["checked"] == 2
    assert found["next"] is None


def deleted(person, *numbers):
    """As somebody with the database would."""
    with connection.cursor() as cursor:
        for number in numbers:
            cursor.execute(
                "DELETE FROM core_auditentry WHERE organisation_id = %s AND number = %s",
                [person.organisation.pk, number],
            )


def test_what_was_taken_out_is_named(alice):
    count = written(alice)
    deleted(alice, 2)
    assert broken(alice) == (2, "missing")
    assert broken(alice, after=2) == (2, "missing")
    assert broken(alice, after=3) is None, "what comes behind is whole"
    deleted(alice, count)
    assert broken(alice, after=3) == (count, "missing"), "the newest ones are missed as well"


def test_a_chain_that_was_made_anew_is_found_by_a_hash_that_somebody_kept(alice):
    count = written(alice)
    kept = rows(alice).get(number=3).hash
    rows(alice).filter(number=2).update(actor="eve@example.com")
    found = list(rows(alice).order_by("number"))
    end = chained(found, Link())
    rows(alice).bulk_update(found, ["hash"])
    AuditChain.objects.for_organisation(alice.organisation).update(hash=end.hash)
    assert broken(alice) is None, "from within nothing is to be seen"
    assert broken(alice, after=3, hash=kept) == (3, "kept")
    deleted(alice, *range(3, count + 1))
    AuditChain.objects.for_organisation(alice.organisation).update(number=2, hash=found[1].hash)
    assert broken(alice) is None
    assert broken(alice, after=3, hash=kept) == (3, "missing")


@pytest.mark.parametrize("number", [2, 3])
def test_a_hash_that_somebody_kept_shows_what_was_changed_in_its_entry_or_made_anew_before_it(alice, number):
    """Though its own hash was left as it was."""
    written(alice)
    kept = rows(alice).get(number=3).hash
    rows(alice).filter(number=number).update(actor="eve@example.com")
    assert broken(alice, after=3, hash=kept) == ((3, "changed") if number == 3 else None)
    found = list(rows(alice).filter(number__lt=3).order_by("number"))
    chained(found, Link())
    rows(alice).bulk_update(found, ["hash"])
    assert broken(alice, after=3, hash=kept) == (3, "changed")


def test_an_end_that_was_changed_is_named(alice):
    count = written(alice)
    chain = AuditChain.objects.for_organisation(alice.organisation)
    for change in ({"hash": "f" * 64}, {"number": count - 1}):
        before = chain.values("hash", "number").get()
        chain.update(**change)
        assert broken(alice)[1] == "head"
        chain.update(**before)
    assert broken(alice) is None


def test_a_long_trail_is_followed_in_pieces(alice, monkeypatch):
    monkeypatch.setattr(audit_sealing, "MOST_FOLLOWED", 2)
    count, checked, query = written(alice, 4), 0, {}
    while True:
        found = asked(alice, **query)
        checked += found["checked"]
        if found["next"] is None:
            break
        query = {"after": found["next"], "hash": found["last"]["hash"]}
    assert checked == count
    AuditChain.objects.for_organisation(alice.organisation).update(hash="f" * 64)
    assert asked(alice, **query)["broken"]["code"] == "head", "also where the last piece is full"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"after": "-1"}, "after"), ({"after": "x"}, "after"), ({"after": str(2**63)}, "after"), ({"after": "9" * 30}, "after"),
        ({"after": "\u0663"}, "after"), ({"after": "99"}, "after"), ({"hash": "a" * 64}, "hash"),
        ({"after": "1", "hash": "x"}, "hash"), ({"after": "1", "hash": "A" * 64}, "hash"), ({"hash": ""}, "hash"),
    ],
)  # fmt: skip
def test_a_bad_question_is_named(alice, query, field):
    written(alice)
    assert problem(alice.api.get(URL, query), 400, "invalid")["errors"][0]["field"] == field


def test_each_organisation_has_a_chain_of_its_own(alice, charlie):
    written(alice)
    count = written(charlie, 1)
    rows(alice).filter(number=1).update(actor="eve@example.com")
    assert broken(alice) == (1, "changed")
    assert (asked(charlie)["checked"], broken(charlie)) == (count, None)
    moved = rows(alice).filter(number=2)
    AuditEntry.objects.unscoped("a test").filter(pk=moved.get().pk).update(
        organisation_id=charlie.organisation.pk, number=count + 1
    )
    assert broken(charlie)[1] == "head", "another's entry is not one of ours"


def test_the_list_and_the_file_have_numbers_and_hashes(alice):
    count = written(alice)
    (newest, *_) = alice.api.get("/api/v1/audit").json()["items"]
    assert newest["number"] == count
    (row, *_) = csv.DictReader(io.StringIO(alice.api.get("/api/v1/audit.csv").getvalue().decode(), newline=""))
    assert (row["number"], row["hash"]) == (str(count), newest["hash"])
    document = {name: value for name, value in row.items() if name not in ("hash", "number", "before", "after")}
    document |= {"chain": 1, "organisation": alice.organisation.pk, "id": int(row["id"]), "number": count}
    document |= {"detail": json.loads(row["detail"]), "previous_hash": rows(alice).get(number=count - 1).hash}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    assert hashlib.sha256(text.encode()).hexdigest() == row["hash"], "who has the file needs nobody to check it"


# --- operators ------------------------------------------------------------------------------------------------------------


def test_operators_verify_all_of_them(alice, charlie, capsys):
    for person in (alice, charlie):
        audit.record(organisation=person.organisation, actor="a", action="x.y", target="t")
    call_command("audit_chain")
    said = capsys.readouterr().out
    count = rows(alice).count()
    assert f"{alice.organisation.pk}: {count} entries: all as they were written" in said
    assert f"{charlie.organisation.pk}: " in said
    rows(alice).filter(number=2).update(actor="eve@example.com")
    with pytest.raises(CommandError, match="1 of 2 audit trails are not as they were written"):
        call_command("audit_chain")
    said = capsys.readouterr().out
    assert f"{alice.organisation.pk}: 1 entries: the entry 2 is not as it was written (changed)" in said
    call_command("audit_chain", organisation=charlie.organisation.pk)
    with pytest.raises(CommandError, match="no audit trail of org-nobodys"):
        call_command("audit_chain", organisation="org-nobodys")


def test_a_trail_that_was_deleted_as_a_whole_is_missed(alice):
    audit.record(organisation=alice.organisation, actor="a", action="x.y", target="t")
    call_command("audit_chain")
    deleted(alice, *range(1, rows(alice).count() + 1))
    with pytest.raises(CommandError, match="1 of 1 audit trails"):
        call_command("audit_chain")


@pytest.mark.django_db(transaction=True)
def test_entries_of_before_are_chained_by_the_migration(alice, charlie):
    newest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    MigrationExecutor(connection).migrate([("core", "0004_alter_operation_organisation")])
    MigrationExecutor(connection).migrate(newest)
    for person in (alice, charlie):
        found = asked(person)
        assert (found["checked"], found["waiting"], found["broken"]) == (rows(person).count(), 0, None)
        assert found["checked"] > 0
    written(alice)
    assert broken(alice) is None
