"""REST of messages: looking, reading one, writing one, deleting; who may, and what is said when it cannot be done."""

from __future__ import annotations

import csv
import io
import json
from urllib.parse import parse_qs, urlsplit

import pytest

from controlplane.core.errors import ClusterUnavailable, Invalid, LimitReached
from controlplane.core.models import AuditEntry
from controlplane.messages import by_schema, selectors
from controlplane.schemas import values as values_of_schemas
from quota.contracts.namespace import AUDIT_TOPIC
from tests.controlplane.test_instances_api import problem

from .conftest import in_base64


def values(answer):
    return [item["value"] for item in answer.json()["items"]]


def places(answer):
    return [(item["partition"], item["offset"]) for item in answer.json()["items"]]


def ok(answer, status=200):
    assert answer.status_code == status, answer.content
    return answer


# --- looking ----------------------------------------------------------------------------------------------------------


def test_a_message_is_told_with_all_that_it_has(alice, address, orders):
    orders(2, b"\xff\x00", key=b"k", headers=(("a", b"1"), ("a", None)), timestamp_ms=1234)
    body = ok(alice.api.get(address)).json()
    assert body["items"] == [
        {
            "partition": 2,
            "offset": 0,
            "timestamp_ms": 1234,
            "key": in_base64(b"k"),
            "value": in_base64(b"\xff\x00"),
            "headers": [["a", in_base64(b"1")], ["a", None]],
            "key_bytes": 1,
            "value_bytes": 2,
            "headers_bytes": 3,
            "header_count": 2,
            "cut": False,
            "masked": False,
            "source": "topic",
            "load": None,
            "decoded": {"key": None, "value": None},
        }
    ]
    assert (body["next"], body["masked"]) == (None, False)


# --- as a file --------------------------------------------------------------------------------------------------------


def test_a_page_is_a_file_whose_link_leads_to_the_next_one(alice, address, orders):
    for n in range(3):
        orders(0, b"value\n%d" % n, key=b"\xff")
    first = ok(alice.api.get(address, {"file": "jsonl", "limit": "2", "start": "oldest"}))
    rows = [json.loads(line) for line in first.content.decode().splitlines()]
    assert [(row["value"], row["key"], row["key_encoding"]) for row in rows] == [
        ("value\n0", "/w==", "base64"),
        ("value\n1", "/w==", "base64"),
    ]
    assert (first["Message-Count"], first["Content-Type"]) == ("2", "application/x-ndjson; charset=utf-8")
    following = first["Link"].removeprefix("<").removesuffix('>; rel="next"')
    assert parse_qs(urlsplit(following).query)["limit"] == ["2"]
    last = ok(alice.api.get(following.replace("jsonl", "csv")))
    (row,) = csv.DictReader(io.StringIO(last.content.decode(), newline=""))
    assert (row["offset"], row["value"]) == ("2", "value\n2")
    assert "Link" not in last


def test_nothing_in_a_file_is_cut(alice, address, orders):
    for _ in range(3):
        orders(0, b"x" * 600_000)
    assert ok(alice.api.get(address)).json()["items"][0]["cut"] is True
    rows = ok(alice.api.get(address, {"file": "jsonl"})).content.decode().splitlines()
    assert [(len(row["value"]), row["cut"]) for row in map(json.loads, rows)] == [(600_000, False)] * 3


def test_a_file_has_what_a_schema_makes_of_every_message_however_large_they_are_together(alice, address, orders):
    schema = {"type": "record", "name": "Order", "fields": [{"name": "item", "type": "string"}]}
    where = address.replace("messages", "schemas/value")
    ok(alice.api.put(where, {"format": "avro", "definition": json.dumps(schema)}, format="json"))
    for _ in range(12):  # more together than schemas read for one page
        orders(0, b"\x80\xb5\x18" + b"x" * 200_000)
    following, rows = f"{address}?file=jsonl&partition=0&start=oldest&limit=100", []
    while following:
        answer = ok(alice.api.get(following))
        rows += map(json.loads, answer.content.decode().splitlines())
        following = answer.headers.get("Link", "").partition(">")[0].removeprefix("<")
    assert [row["offset"] for row in rows] == list(range(12))
    assert {len(row["value_decoded"]["item"]) for row in rows} == {200_000}


def test_a_viewers_file_has_nothing_of_what_stands_in_messages(viewer, address, orders):
    orders(0, b"a secret", key=b"of whom", headers=(("which", b"kind"),))
    for form in ("jsonl", "csv"):
        text = ok(viewer.api.get(address, {"file": form})).content.decode()
        assert "masked" in text
        assert not any(word in text for word in ("secret", "whom", "which", "kind"))


def test_a_part_of_a_key_is_sought(alice, address, orders):
    for key in (b"order-1", b"order-2", None, b"bill-1"):
        orders(0, b"x", key=key)
    assert places(alice.api.get(address, {"key_contains": "order", "start": "oldest"})) == [(0, 0), (0, 1)]
    assert places(alice.api.get(address, {"key_contains": "-1", "contains": "y"})) == []


def test_a_search_that_schemas_have_no_more_room_for_ends_there_and_goes_on(alice, address, orders, monkeypatch):
    schema = {"type": "record", "name": "Order", "fields": [{"name": "item", "type": "string"}]}
    where = address.replace("messages", "schemas/value")
    ok(alice.api.put(where, {"format": "avro", "definition": json.dumps(schema)}, format="json"))
    monkeypatch.setattr(by_schema, "Allowance", lambda: values_of_schemas.Allowance(bytes_left=20))
    for n in range(20):
        orders(0, b"\x04o%d" % (n % 2))
    query, found, pages = {"contains": '"o1"', "partition": "0"}, [], 0
    while query is not None:
        page = ok(alice.api.get(address, query)).json()
        found += [item["offset"] for item in page["items"]]
        query, pages = page["next"] and {**query, "cursor": page["next"]}, pages + 1
    assert found == list(range(19, 0, -2))
    assert pages > 3


def test_a_value_that_is_null_is_something_else_than_an_empty_one(alice, address, orders):
    orders(0, None, key=b"gone")
    orders(0, b"", key=b"")
    empty, tombstone = ok(alice.api.get(address)).json()["items"]
    assert (empty["value"], empty["value_bytes"], empty["key"]) == ("", 0, "")
    assert (tombstone["value"], tombstone["value_bytes"]) == (None, None)


def test_without_a_word_come_twenty_of_the_newest_of_all_partitions_and_then_the_rest(alice, address, orders):
    for n in range(50):
        orders(n % 3, b"%d" % n)
    pages, cursor = [], ""
    while cursor is not None:
        answer = ok(alice.api.get(address, {"cursor": cursor} if cursor else {}))
        pages.append(values(answer))
        cursor = answer.json()["next"]
    assert [len(page) for page in pages] == [20, 20, 10]
    assert [value for page in pages for value in page] == [in_base64(b"%d" % n) for n in range(49, -1, -1)]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"partition": 1}, [(1, 2), (1, 1), (1, 0)]),
        ({"partition": 1, "start": "oldest"}, [(1, 0), (1, 1), (1, 2)]),
        ({"partition": 1, "offset": 1}, [(1, 1), (1, 2)]),
        ({"partition": 1, "offset": 3}, []),
        ({"timestamp_ms": 107}, [(1, 2), (2, 2)]),
        ({"timestamp_ms": 900}, []),
        ({"start": "oldest", "limit": 2}, [(0, 0), (1, 0)]),
        ({"start": "end"}, []),
        ({"key": in_base64(b"k1")}, [(1, 2), (1, 1), (1, 0)]),
        ({"contains": "ue 7"}, [(1, 2)]),
        ({"contains": "nothing"}, []),
        ({"header": "n"}, [(2, 2), (1, 2), (0, 2), (2, 1), (1, 1), (0, 1), (2, 0), (1, 0), (0, 0)]),
        ({"header": "n=7"}, [(1, 2)]),
        ({"header": "7"}, []),
    ],
)
def test_where_to_begin_and_what_to_show(alice, address, orders, asked, found):
    for n in range(9):
        orders(n % 3, b"value %d" % n, key=b"k%d" % (n % 3), timestamp_ms=100 + n, headers=(("n", b"%d" % n),))
    assert places(ok(alice.api.get(address, asked))) == found


def test_a_live_tail_is_asked_for_by_newer(alice, address, orders):
    orders(0, b"before")
    newer = ok(alice.api.get(address)).json()["newer"]
    assert values(ok(alice.api.get(address, {"cursor": newer}))) == []
    orders(2, b"after")
    answer = ok(alice.api.get(address, {"cursor": newer}))
    assert values(answer) == [in_base64(b"after")]
    assert values(ok(alice.api.get(address, {"cursor": answer.json()["newer"]}))) == []


def test_a_search_says_how_far_it_looked_and_goes_on(alice, address, orders, monkeypatch):
    monkeypatch.setattr(selectors, "MOST_RECORDS", 100)
    for n in range(300):
        orders(0, b"needle" if n == 0 else b"hay")
    asked, found, pages = {"partition": 0, "contains": "needle"}, [], 0
    while "cursor" not in asked or asked["cursor"]:
        body = ok(alice.api.get(address, asked)).json()
        (place,) = body["looked_at"]["partitions"]
        assert 0 < body["looked_at"]["records"] <= 100
        assert place["from_offset"] - place["to_offset"] == body["looked_at"]["records"]
        assert (place["first_offset"], place["end_offset"]) == (0, 300)
        found += body["items"]
        pages += 1
        asked["cursor"] = body["next"]
    assert [item["offset"] for item in found] == [0]
    assert 3 <= pages <= 30


def test_what_is_larger_than_a_page_is_cut_and_read_whole_by_its_offset(alice, address, orders):
    orders(0, b"x" * 3_000_000)
    (item,) = ok(alice.api.get(address)).json()["items"]
    assert (item["cut"], item["value_bytes"]) == (True, 3_000_000)
    assert len(item["value"]) < 1_500_000
    whole = ok(alice.api.get(f"{address}/0/0")).json()
    assert (whole["cut"], whole["value"]) == (False, in_base64(b"x" * 3_000_000))


def test_gaps_of_compaction_are_passed(alice, address, orders, admin):
    for n in range(6):
        orders(0, b"%d" % n)
    for offset in (0, 2, 5):
        admin.messages.compact(orders.physical, 0, offset)
    assert places(ok(alice.api.get(address))) == [(0, 4), (0, 3), (0, 1)]
    assert places(ok(alice.api.get(address, {"start": "oldest"}))) == [(0, 1), (0, 3), (0, 4)]
    body = problem(alice.api.get(f"{address}/0/2"), 404, "message_not_found")
    assert "offset 2 of partition 0" in body["detail"]


def test_an_offset_out_of_range_is_told_with_what_there_is(alice, address, orders, admin):
    for _ in range(5):
        orders(0, b"x")
    admin.messages.delete_before(orders.physical, {0: 2})
    for offset in (0, 6):
        body = problem(alice.api.get(address, {"partition": 0, "offset": offset}), 400, "offset_out_of_range")
        assert (body["first_offset"], body["end_offset"]) == (2, 5)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"partition": 3}, "partition"),
        ({"partition": "x"}, "partition"),
        ({"offset": 1}, "offset"),
        ({"partition": 0, "offset": -1}, "offset"),
        ({"partition": 0, "offset": 0, "timestamp_ms": 0}, "timestamp_ms"),
        ({"limit": 0}, "limit"),
        ({"limit": 201}, "limit"),
        ({"key": "%%%"}, "key"),
        ({"start": "middle"}, "start"),
        ({"cursor": "abc"}, "cursor"),
        ({"fitler": "x"}, "fitler"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_name(alice, address, asked, field):
    body = problem(alice.api.get(address, asked), 400, "invalid")
    assert field in {each["field"] for each in body["errors"]}


def test_one_of_very_many_partitions_is_looked_at_alone(alice, address, admin, orders):
    admin.grow(orders.physical, 101)
    orders(100, b"x")
    assert places(ok(alice.api.get(address, {"partition": 100}))) == places(ok(alice.api.get(address))) == [(100, 0)]


# --- who may ----------------------------------------------------------------------------------------------------------


def test_a_viewer_sees_where_messages_are_and_how_large_and_nothing_else(viewer, address, orders):
    orders(0, b"a secret", key=b"of whom", headers=(("which", b"kind"),))
    answer = ok(viewer.api.get(address))
    body = answer.json()
    assert body["masked"] is True
    (item,) = body["items"]
    assert (item["key"], item["value"], item["headers"], item["masked"]) == (None, None, [], True)
    assert (item["key_bytes"], item["value_bytes"], item["headers_bytes"], item["header_count"]) == (7, 8, 9, 1)
    one = ok(viewer.api.get(f"{address}/0/0"))
    for content in (b"a secret", b"of whom", b"which", b"kind"):
        for told in (answer, one):
            assert content not in told.content
            assert in_base64(content).encode() not in told.content


@pytest.mark.parametrize("asked", [{"key": in_base64(b"k")}, {"contains": "secret"}])
def test_a_viewer_cannot_find_out_by_searching(viewer, address, orders, asked):
    orders(0, b"a secret", key=b"k")
    problem(viewer.api.get(address, asked), 403, "forbidden")


def test_a_member_reads_and_writes_and_deletes_nothing(bob, address, deletion, orders):
    orders(0, b"x")
    assert values(ok(bob.api.get(address))) == [in_base64(b"x")]
    ok(bob.api.post(address, {"value": in_base64(b"y")}), 201)
    body = problem(bob.api.post(deletion, {"before": {"0": 1}}), 403, "forbidden")
    assert "owners" in body["detail"]


def test_a_viewer_writes_and_deletes_nothing(viewer, address, deletion, orders, admin):
    orders(0, b"x")
    problem(viewer.api.post(address, {"value": None}), 403, "forbidden")
    problem(viewer.api.post(deletion, {"before": {"0": 1}}), 403, "forbidden")
    assert not admin.groups.rounds["produce"] + admin.groups.rounds["delete_before"]


def test_anothers_topic_is_answered_byte_for_byte_as_one_that_was_never_made(alice, charlie, instance, address, orders):
    """Of a stranger; and within one's own instance a topic of another's name is as unknown as any."""
    orders(0, b"x")
    made_up = address.replace(instance.id, "ins-aaaaaaaa")
    for path in ("", "/0/0"):
        theirs, nobodys = charlie.api.get(address + path), charlie.api.get(made_up + path)
        assert (theirs.status_code, nobodys.status_code) == (404, 404)
        assert theirs.content.replace(instance.id.encode(), b"") == nobodys.content.replace(b"ins-aaaaaaaa", b"")
    missing = address.replace("orders", "ordres")
    for call in (alice.api.get(missing), alice.api.post(missing, {"value": None}), alice.api.get(f"{missing}/0/0")):
        assert problem(call, 404, "topic_not_found")["detail"] == "no topic ordres"
    for name in (orders.physical, "..", "a b"):
        problem(alice.api.get(address.replace("/orders/", f"/{name}/")), 404, "topic_not_found")


# --- what is behind it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["", "/0/0"])
def test_brokers_that_are_away_are_a_sentence_and_a_time_to_try_again(alice, address, admin, orders, path):
    orders(0, b"x")
    admin.away = True
    answer = alice.api.get(address + path)
    assert problem(answer, 503, "cluster_unavailable")["retriable"]
    assert answer.headers["Retry-After"] == "2"


def test_a_partition_without_a_leader_hides_no_other(alice, address, admin, orders):
    orders(0, b"x")
    layout = admin.topics[orders.physical]
    parted = [type(layout.partitions[1])(1, None, (1,), ())]
    admin.topics[orders.physical] = type(layout)(layout.name, (layout.partitions[0], *parted, layout.partitions[2]))
    body = ok(alice.api.get(address)).json()
    assert [item["offset"] for item in body["items"]] == [0]
    assert body["looked_at"]["unavailable"] == [1]
    problem(alice.api.get(address, {"partition": 1}), 503, "cluster_unavailable")


def without_a_leader(admin, orders, partition):
    layout = admin.topics[orders.physical]
    admin.topics[orders.physical] = type(layout)(
        layout.name,
        tuple(
            type(each)(number, None, (1,), ()) if number == partition else each
            for number, each in enumerate(layout.partitions)
        ),
    )
    return layout


def test_a_partition_that_was_away_at_the_first_look_comes_with_a_later_page(alice, address, admin, orders):
    for n in range(4):
        orders(n % 2, b"%d" % n)
    whole = without_a_leader(admin, orders, 1)
    body = ok(alice.api.get(address)).json()
    assert [(item["partition"], item["offset"]) for item in body["items"]] == [(0, 1), (0, 0)]
    assert body["looked_at"]["unavailable"] == [1]
    refusal = problem(alice.api.get(address, {"cursor": body["next"]}), 503, "cluster_unavailable")
    assert refusal["detail"].endswith("these partitions have no leader now: 1")
    admin.topics[orders.physical] = whole
    answer = ok(alice.api.get(address, {"cursor": body["next"]}))
    assert places(answer) == [(1, 1), (1, 0)]
    assert (answer.json()["next"], answer.json()["looked_at"]["unavailable"]) == (None, [])


def test_one_that_is_away_in_the_middle_is_not_lost_either(alice, address, admin, orders):
    for n in range(6):
        orders(n % 2, b"%d" % n)
    first = ok(alice.api.get(address, {"limit": 2})).json()
    whole = without_a_leader(admin, orders, 1)
    second = ok(alice.api.get(address, {"cursor": first["next"]}))
    assert places(second) == [(0, 1), (0, 0)]
    admin.topics[orders.physical] = whole
    assert places(ok(alice.api.get(address, {"cursor": second.json()["next"]}))) == [(1, 1), (1, 0)]


def test_from_the_oldest_on_it_comes_from_its_beginning_and_from_a_time_from_there(alice, address, admin, orders):
    for n in range(4):
        orders(n % 2, b"%d" % n, timestamp_ms=100 + n)
    whole = without_a_leader(admin, orders, 1)
    looks = [ok(alice.api.get(address, asked)).json() for asked in ({"start": "oldest"}, {"timestamp_ms": 102})]
    again = ok(alice.api.get(address, {"cursor": looks[0]["next"]})).json()
    assert (again["items"], again["next"]) == ([], looks[0]["next"])
    admin.topics[orders.physical] = whole
    later = [places(ok(alice.api.get(address, {"cursor": look["next"]}))) for look in looks]
    assert later == [[(1, 0), (1, 1)], [(1, 1)]]


def test_a_live_tail_hears_of_a_partition_that_was_away_when_it_began(alice, address, admin, orders):
    orders(1, b"before")
    whole = without_a_leader(admin, orders, 1)
    newer = ok(alice.api.get(address)).json()["newer"]
    orders(0, b"meanwhile")
    answer = ok(alice.api.get(address, {"cursor": newer}))
    assert values(answer) == [in_base64(b"meanwhile")]
    admin.topics[orders.physical] = whole
    orders(1, b"after", timestamp_ms=2**42)
    assert values(ok(alice.api.get(address, {"cursor": answer.json()["newer"]}))) == [in_base64(b"after")]


@pytest.fixture
def wide(instance, admin):
    """A topic of 250 partitions, with ten messages in each: its name in the cluster, and its address."""
    physical = f"{instance.id.removeprefix('ins-')}.wide"
    admin.create(physical, partitions=250, replication_factor=1, config={})
    for n in range(2500):
        admin.messages.write(physical, n * 7 % 250, b"%d" % n)
    return physical, f"/api/v1/instances/{instance.id}/topics/wide/messages"


@pytest.mark.parametrize("start", ["newest", "oldest"])
def test_a_topic_of_more_partitions_than_a_look_goes_through_is_shown_whole(alice, wide, start):
    asked, shown, waiting = {"start": start, "limit": 200}, [], []
    while True:
        body = ok(alice.api.get(wide[1], asked)).json()
        assert len(body["looked_at"]["partitions"]) <= 100
        shown += [(item["partition"], item["offset"]) for item in body["items"]]
        waiting.append(body["looked_at"]["waiting"])
        assert len(body["next"] or "") < 4_096
        if body["next"] is None:
            break
        asked = {"limit": 200, "cursor": body["next"]}
    assert sorted(shown) == [(partition, offset) for partition in range(250) for offset in range(10)]
    assert (waiting[0], waiting[-1]) == (150, 0)


def test_the_newest_of_many_partitions_are_those_of_all(alice, wide):
    found = values(ok(alice.api.get(wide[1])))
    assert found == [in_base64(b"%d" % n) for n in range(2499, 2479, -1)]


def test_a_live_tail_of_many_partitions_hears_of_each(alice, wide, admin):
    newer = ok(alice.api.get(wide[1])).json()["newer"]
    for partition in (0, 120, 249):
        admin.messages.write(wide[0], partition, b"new", timestamp_ms=2**42)
    answer = ok(alice.api.get(wide[1], {"cursor": newer}))
    assert sorted(places(answer)) == [(0, 10), (120, 10), (249, 10)]
    assert places(ok(alice.api.get(wide[1], {"cursor": answer.json()["newer"]}))) == []


def test_brokers_that_send_nothing_in_time_are_away_as_well(alice, address, orders, monkeypatch):
    orders(0, b"x")
    monkeypatch.setattr(selectors, "MOST_S", -1.0)
    problem(alice.api.get(address), 503, "cluster_unavailable")
    problem(alice.api.get(f"{address}/0/0"), 503, "cluster_unavailable")


def test_who_has_used_up_the_bandwidth_waits_as_his_consumers_do(alice, address, admin, orders):
    orders(0, b"x")
    admin.messages.wait_s = 7.2
    ok(alice.api.get(address))  # what was read was charged
    answer = alice.api.get(address)
    assert problem(answer, 429, "bandwidth_used_up")["retriable"]
    assert 7 <= int(answer.headers["Retry-After"]) <= 8


def test_without_a_cache_nobody_is_kept_out(alice, address, admin, orders, settings):
    orders(0, b"x")
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1/0"}
    }
    admin.messages.wait_s = 7.2
    for _ in range(2):
        ok(alice.api.get(address))


def test_a_look_asks_the_cluster_a_few_times_whatever_it_shows(alice, address, admin, orders):
    for n in range(300):
        orders(n % 3, b"x" * 100)
    admin.groups.rounds.clear()
    ok(alice.api.get(address, {"limit": 100}))
    assert sum(admin.groups.rounds.values()) <= 12


# --- writing ----------------------------------------------------------------------------------------------------------


def test_a_message_is_written_as_it_was_sent_and_the_audit_has_nothing_of_it(alice, address, orders, instance):
    sent = {
        "partition": 1,
        "key": in_base64(b"secret key"),
        "value": in_base64(b"secret value"),
        "headers": [["secret header", in_base64(b"secret too")], ["b", None]],
        "timestamp_ms": 1_700_000_000_123,
    }
    written = ok(alice.api.post(address, sent), 201).json()
    assert {name: written[name] for name in sent} == sent
    assert ok(alice.api.get(address)).json()["items"] == [written]
    entry = AuditEntry.objects.unscoped("a test").get(action="message.produce")
    assert (entry.actor, entry.target) == ("alice@example.com", f"{instance.id}/orders")
    assert entry.detail == {
        "partition": 1,
        "offset": 0,
        "bytes": len(b"secret keysecret valuesecret headersecret toob"),
    }
    assert "secret" not in json.dumps(entry.detail)


def test_a_message_without_a_value_says_so(alice, address, orders, admin):
    written = ok(alice.api.post(address, {"value": None}), 201).json()
    assert (written["key"], written["value"], written["headers"]) == (None, None, [])
    problem(alice.api.post(address, {}), 400, "invalid")
    problem(alice.api.post(address), 400, "invalid")
    assert admin.groups.rounds["produce"] == 1


def test_an_empty_value_and_an_empty_key_are_written_as_such(alice, address, orders, admin):
    written = ok(alice.api.post(address, {"value": "", "key": ""}), 201).json()
    assert (written["key"], written["value"], written["key_bytes"], written["value_bytes"]) == ("", "", 0, 0)
    assert admin.messages.extras[orders.physical, 0, 0].value == b""
    assert ok(alice.api.post(f"{address}?dry_run=true", {"value": "", "key": ""})).json()["dry_run"] is True
    assert admin.groups.rounds["produce"] == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"value": "not base64"}, "value"),
        ({"value": 5}, "value"),
        ({"value": None, "headers": [["a"]]}, "headers"),
        ({"value": None, "headers": [[1, None]]}, "headers"),
        ({"value": None, "headers": [["a\0b", None]]}, "headers"),
        ({"value": None, "headers": [["a", None]] * 101}, "headers"),
        ({"value": None, "partition": -1}, "partition"),
        ({"value": None, "partition": 3}, "partition"),
        ({"value": None, "offset": 5}, "offset"),
        ({"value": None, "timestamp_ms": -1}, "timestamp_ms"),
        ({"value": None, "timestamp_ms": 0}, "timestamp_ms"),
    ],
)
def test_what_cannot_be_written_is_refused_by_its_name(alice, address, body, field):
    assert field in {each["field"] for each in problem(alice.api.post(address, body), 400, "invalid")["errors"]}


def test_an_empty_key_and_an_empty_value_are_bytes_and_not_null(alice, address, admin, orders):
    answer = ok(alice.api.post(address, {"key": "", "value": "", "partition": 1}), 201).json()
    assert (answer["key"], answer["key_bytes"], answer["value"], answer["value_bytes"]) == ("", 0, "", 0)
    message = admin.messages.extras[orders.physical, 1, 0]
    assert (message.key, message.value) == (b"", b"")
    assert ok(alice.api.post(f"{address}?dry_run=true", {"key": "", "value": ""})).json()["changes"]["key_bytes"] == [
        None,
        0,
    ]


@pytest.mark.parametrize(
    ("refusal", "status", "code"),
    [
        (
            Invalid("the message is larger than the topic's max.message.bytes", code="message_too_large"),
            400,
            "message_too_large",
        ),
        (LimitReached("storage is full", code="storage_full"), 409, "storage_full"),
        (ClusterUnavailable("the cluster cannot do this now"), 503, "cluster_unavailable"),
    ],
)
def test_what_brokers_refuse_is_told_and_nothing_is_audited(alice, address, admin, refusal, status, code):
    admin.messages.refusal = refusal
    problem(alice.api.post(address, {"value": None}), status, code)
    assert not AuditEntry.objects.unscoped("a test").filter(action="message.produce").exists()


def test_the_services_own_topic_is_read_and_not_written(alice, address, deletion, admin, instance, orders):
    own = orders.physical.replace("orders", AUDIT_TOPIC)
    admin.create(own, partitions=1, replication_factor=1, config={})
    admin.messages.write(own, 0, b"{}")
    path = address.replace("orders", AUDIT_TOPIC)
    assert values(ok(alice.api.get(path))) == [in_base64(b"{}")]
    problem(alice.api.post(path, {"value": None}), 409, "topic_reserved")
    problem(alice.api.post(deletion.replace("orders", AUDIT_TOPIC), {"before": {"0": 1}}), 409, "topic_reserved")


# --- deleting ---------------------------------------------------------------------------------------------------------


def test_records_before_an_offset_go_and_a_dry_run_only_counts_them(alice, address, deletion, orders, instance):
    for n in range(6):
        orders(n % 2, b"x")
    asked = {"before": {"0": 2, "1": -1}}
    told = [
        {"partition": 0, "first_offset": 0, "before_offset": 2, "records": 2},
        {"partition": 1, "first_offset": 0, "before_offset": 3, "records": 3},
    ]
    assert ok(alice.api.post(deletion, asked | {"dry_run": True})).json() == {"partitions": told}
    assert len(places(ok(alice.api.get(address)))) == 6
    entries = AuditEntry.objects.unscoped("a test").filter(action="topic.records.delete")
    assert not entries.exists()
    assert ok(alice.api.post(deletion, asked)).json() == {"partitions": told}
    assert places(ok(alice.api.get(address))) == [(0, 2)]
    assert entries.get().detail == {"records": 5, "before": {"0": 2, "1": 3}}
    assert entries.get().target == f"{instance.id}/orders"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"before": {}},
        {"before": {"x": 1}},
        {"before": {"0": -2}},
        {"before": {"0": True}},
        {"before": [1]},
        {"before": {"3": 0}},
        {"before": {"0": 0, "00": -1}},
    ],
)
def test_what_names_no_offset_deletes_nothing(alice, deletion, admin, orders, body):
    problem(alice.api.post(deletion, body), 400, "invalid")
    assert not admin.groups.rounds["delete_before"]


@pytest.mark.parametrize("dry_run", [True, False])
def test_more_than_there_is_is_not_deleted(alice, deletion, admin, orders, dry_run):
    orders(0, b"x")
    body = problem(alice.api.post(deletion, {"before": {"0": 2}, "dry_run": dry_run}), 400, "offset_out_of_range")
    assert (body["first_offset"], body["end_offset"]) == (0, 1)
    assert not admin.groups.rounds["delete_before"]


def test_where_nothing_would_go_nobody_is_asked(alice, deletion, admin, orders):
    orders(0, b"x")
    (told,) = ok(alice.api.post(deletion, {"before": {"0": 0}})).json()["partitions"]
    assert told["records"] == 0
    assert not admin.groups.rounds["delete_before"]
    assert not AuditEntry.objects.unscoped("a test").filter(action="topic.records.delete").exists()
