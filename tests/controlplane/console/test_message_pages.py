"""The console's messages: found, opened, followed live, written and deleted; whatever bytes stand in them."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from html import unescape

import pytest

from controlplane.console import contents
from controlplane.console.views import topic_messages
from controlplane.core.models import AuditEntry
from controlplane.loads.models import LoadRun
from controlplane.messages import selectors
from controlplane.topics import services as topics
from tests.controlplane.fakes import FakeGroup
from tests.controlplane.loads.rows import LONG_AGO, load_row
from tests.support.delta_tables import commit

from .conftest import problem_beside, text_of

SCRIPT = b"<script>alert('x')</script><img src=x onerror=alert(1)>\"'&"


@pytest.fixture
def orders(alice, instance, admin):
    topics.topic_create(
        organisation=alice.organisation,
        actor="a",
        instance_id=instance.id,
        name="orders",
        partitions=3,
        replication_factor=1,
    )
    physical = f"{instance.id.removeprefix('ins-')}.orders"
    return lambda partition, value, **members: admin.messages.write(physical, partition, value, **members)


@pytest.fixture
def path(instance, orders):
    return f"instances/{instance.id}/topics/orders/messages"


def offsets(page):
    return [tuple(map(int, found)) for found in re.findall(r'/messages/(\d+)/(\d+)">\d+, ', page.content.decode())]


def link(page, label):
    found = re.search(rf'href="([^"]*)">{label}</a>', page.content.decode())
    return unescape(found[1]) if found else None


def test_the_newest_stand_on_top_with_what_is_in_them(at_alice, path, orders):
    for n in range(3):
        orders(n, b"value %d" % n, key=b"key %d" % n, timestamp_ms=1_700_000_000_000 + n * 1000)
    page = at_alice.get(path)
    assert offsets(page) == [(2, 0), (1, 0), (0, 0)]
    text = text_of(page)
    assert "value 2" in text
    assert "key 0" in text
    assert "2023-11-14 22:13:20 UTC" in text
    assert "Looked at 3 messages" in text


def test_older_and_newer_lead_back_and_forth(at_alice, path, orders):
    for n in range(45):
        orders(0, b"%d" % n)
    first = at_alice.get(path)
    second = at_alice.client.get(link(first, "Older"))
    third = at_alice.client.get(link(second, "Older"))
    assert [offsets(page) for page in (first, second, third)] == [
        [(0, offset) for offset in range(top, max(top - 20, -1), -1)] for top in (44, 24, 4)
    ]
    assert (link(first, "Newer"), link(third, "Older")) == (None, None)
    assert offsets(at_alice.client.get(link(second, "Newer"))) == offsets(first)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"partition": "1"}, [(1, 2), (1, 1), (1, 0)]),
        ({"partition": "1", "begin": "offset", "offset": "1"}, [(1, 2), (1, 1)]),
        ({"begin": "oldest", "text": "7"}, [(1, 2)]),
        ({"key": "k2"}, [(2, 2), (2, 1), (2, 0)]),
        ({"begin": "timestamp", "time": "2023-11-14T22:13:27"}, [(2, 2), (1, 2)]),
    ],
)
def test_the_filter_in_the_address_decides(at_alice, path, orders, asked, found):
    for n in range(9):
        orders(n % 3, b"value %d" % n, key=b"k%d" % (n % 3), timestamp_ms=1_700_000_000_000 + n * 1000)
    assert offsets(at_alice.get(path, data=asked)) == found


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"partition": "9"}, "The topic has no partition 9: it has 3, from 0."),
        ({"begin": "offset", "offset": "1"}, "Offsets are of one partition: name it."),
        ({"begin": "offset", "partition": "1"}, "This is needed for this choice."),
        (
            {"begin": "offset", "partition": "1", "offset": "7"},
            "Partition 1 holds nothing; its next offset is 0: 7 is not among them.",
        ),
    ],
)
def test_what_makes_no_sense_is_said_beside_its_field(at_alice, path, asked, said):
    page = at_alice.get(path, data=asked)
    assert page.status_code == 422
    assert said in text_of(page)


def test_a_search_that_has_not_come_to_its_end_says_so_and_goes_on(at_alice, path, orders, monkeypatch):
    monkeypatch.setattr(selectors, "MOST_RECORDS", 50)
    for n in range(120):
        orders(0, b"needle" if n == 0 else b"hay")
    page = at_alice.get(path, data={"text": "needle", "partition": "0"})
    assert re.search(r"Searching: looked at \d+ messages, found 0", text_of(page))
    for _ in range(20):
        if offsets(page):
            break
        page = at_alice.client.get(link(page, "Go on"))
    assert offsets(page) == [(0, 0)]


def onward(page):
    """Where the row that searches asks again, by itself or when it is stopped; None: it does not."""
    found = re.search(r'<tbody class="search-on" hx-get="([^"]*)" hx-trigger="load', page.content.decode())
    return unescape(found[1]) if found else None


@pytest.fixture
def hay(orders, monkeypatch):
    monkeypatch.setattr(selectors, "MOST_RECORDS", 50)
    for n in range(400):
        orders(0, b"needle" if n in (0, 5) else b"hay")


@pytest.mark.parametrize("begin", ["newest", "oldest"])
def test_with_javascript_a_search_goes_on_by_itself_until_everything_is_looked_through(at_alice, path, hay, begin):
    page = at_alice.get(path, data={"text": "needle", "partition": "0", "begin": begin})
    found, looks = offsets(page), 1
    while onward(page):
        page = at_alice.client.get(onward(page), HTTP_HX_REQUEST="true")
        assert "<html" not in page.content.decode()
        found += offsets(page)
        looks += 1
    assert found == ([(0, 5), (0, 0)])
    assert 8 <= looks <= 40
    assert "Everything is looked through: 400 messages, found 2." in text_of(page)
    assert link(page, "Go on") is None


def test_a_search_ends_by_itself_after_so_many_looks_and_can_be_told_to_go_on(at_alice, path, hay, monkeypatch):
    monkeypatch.setattr(topic_messages, "MOST_LOOKS", 3)
    page = at_alice.get(path, data={"text": "needle", "partition": "0"})
    for _ in range(2):
        page = at_alice.client.get(onward(page), HTTP_HX_REQUEST="true")
    assert onward(page) is None
    assert "Stopped: looked at" in text_of(page)
    assert onward(at_alice.client.get(link(page, "Go on")))


def test_a_search_is_stopped_without_another_look(at_alice, path, hay, admin):
    page = at_alice.get(path, data={"text": "needle", "partition": "0"})
    stop = re.search(r'<button[^>]*hx-get="([^"]*stop=1[^"]*)"', page.content.decode())
    admin.groups.rounds.clear()
    stopped = at_alice.client.get(unescape(stop[1]), HTTP_HX_REQUEST="true")
    assert (onward(stopped), admin.groups.rounds["read"]) == (None, 0)
    assert "Stopped: looked at" in text_of(stopped)


def test_a_search_waits_while_the_bandwidth_is_used_up_and_then_goes_on(at_alice, path, hay, admin):
    page = at_alice.get(path, data={"text": "needle", "partition": "0"})
    admin.messages.wait_s = 7.2
    page = at_alice.client.get(onward(page), HTTP_HX_REQUEST="true")  # the one that is told to wait
    page = at_alice.client.get(onward(page), HTTP_HX_REQUEST="true")
    assert "bandwidth is used up" in text_of(page)
    assert 'hx-trigger="load delay:8s"' in page.content.decode()
    assert onward(page)


def test_without_a_filter_nothing_goes_on_by_itself(at_alice, path, hay):
    assert onward(at_alice.get(path)) is None


def test_keys_are_sought_in_hex_and_base64_and_headers_by_name_and_value(at_alice, path, orders):
    orders(0, b"first", key=b"\x00\xff", headers=(("trace", b"abc"), ("shop", None)))
    orders(1, b"second", key=b"k", headers=(("trace", b"xyz"),))
    for asked, found in (
        ({"key": "00 ff", "key_as": "hex"}, [(0, 0)]),
        ({"key": "AP8=", "key_as": "base64"}, [(0, 0)]),
        ({"key": "k"}, [(1, 0)]),
        ({"header": "shop"}, [(0, 0)]),
        ({"header": "trace"}, [(1, 0), (0, 0)]),
        ({"header": "trace=yz"}, [(1, 0)]),
        ({"header": "shop=x"}, []),
        ({"header": "yz"}, []),
    ):
        assert offsets(at_alice.get(path, data=asked)) == found, asked
    for how, said in (("hex", "This is no hex"), ("base64", "This is no base64")):
        page = at_alice.get(path, data={"key": "0ü", "key_as": how})
        assert (page.status_code, said in text_of(page)) == (422, True)


# --- a page as a file -------------------------------------------------------------------------------------------------


def test_a_page_is_downloaded_as_json_lines_and_csv(at_alice, path, orders):
    orders(0, b"=1+1", key=b"\xff", headers=(("a", b"1"), ("b", None)), timestamp_ms=1234)
    orders(0, None, key=b"gone", timestamp_ms=1235)
    orders(0, b'two\nlines, "quoted"', timestamp_ms=1236)
    lines = at_alice.get(path, data={"download": "jsonl"})
    rows = [json.loads(line) for line in lines.content.decode().splitlines()]
    assert rows[2] == {
        "partition": 0,
        "offset": 0,
        "timestamp_ms": 1234,
        "key": "/w==",
        "key_encoding": "base64",
        "key_decoded": None,
        "value": "=1+1",
        "value_encoding": "utf-8",
        "value_decoded": None,
        "headers": [
            {"name": "a", "value": "1", "encoding": "utf-8"},
            {"name": "b", "value": None, "encoding": "null"},
        ],
        "cut": False,
        "source": "topic",
    }
    assert (rows[1]["value"], rows[1]["value_encoding"]) == (None, "null")
    table = at_alice.get(path, data={"download": "csv"})
    found = list(csv.DictReader(io.StringIO(table.content.decode(), newline="")))
    assert found[2]["value"] == "'=1+1"
    assert json.loads(found[2]["headers"]) == rows[2]["headers"]
    assert found[0]["value"] == 'two\nlines, "quoted"'
    assert (found[1]["key"], found[1]["value"], found[1]["value_encoding"]) == ("gone", "", "null")
    for answer, name in ((lines, "orders-messages.jsonl"), (table, "orders-messages.csv")):
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert at_alice.get(path, data={"download": "exe"}).status_code == 400


def test_nothing_of_what_is_masked_is_in_a_file(at_alice, at_viewer, path, orders, instance):
    schema_of_values(at_alice, instance)
    orders(0, b"\x0ea secre", key=b"of whom", headers=(("which", b"kind"),))
    assert "Download as JSON lines" not in text_of(at_viewer.get(path))
    for form in ("jsonl", "csv"):
        assert "secre" in at_alice.get(path, data={"download": form}).content.decode()
        text = at_viewer.get(path, data={"download": form, "rows": "200"}).content.decode()
        assert "masked" in text
        assert not any(word in text for word in ("secre", "whom", "which", "kind"))


def schema_of_values(at_alice, instance):
    """Avro: a record with one string."""
    schema = {"type": "record", "name": "Order", "fields": [{"name": "item", "type": "string"}]}
    typed = {"format": "avro", "definition": json.dumps(schema), "framing": "none"}
    answer = at_alice.post(f"instances/{instance.id}/topics/orders/schemas/value", typed)
    assert answer.status_code == 302, text_of(answer)


def test_a_file_has_whole_messages_as_many_as_were_chosen_and_what_schemas_make_of_them(
    at_alice, path, orders, instance
):
    schema_of_values(at_alice, instance)
    long = b"x" * 400_000
    for n in range(60):
        orders(0, b"\x04o" + b"%d" % (n % 10) if n < 55 else long, timestamp_ms=1000 + n)
    assert len(offsets(at_alice.get(path))) == 20
    page = at_alice.get(path, data={"rows": "50"})
    assert len(offsets(page)) == 50
    assert "shown in part" in text_of(page)
    files = [unescape(each) for each in re.findall(r'href="([^"]*)" download>', page.content.decode())]
    lines, table = (at_alice.client.get(each).content.decode() for each in files)
    lines = lines.splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 50
    assert {row["cut"] for row in rows} == {False}
    assert rows[0]["value"] == long.decode()
    assert (rows[0]["value_decoded"], rows[10]["value_decoded"]) == (None, {"item": "o9"})
    csv.field_size_limit(2**20)
    assert list(csv.DictReader(io.StringIO(table, newline="")))[10]["value_decoded"] == '{"item": "o9"}'
    assert at_alice.get(path, data={"rows": "1000"}).status_code == 422


def test_text_is_found_in_what_a_schema_makes_of_a_value_and_in_keys(at_alice, path, orders, instance):
    schema_of_values(at_alice, instance)
    orders(0, b"\x04ab", key=b"the first")
    orders(0, b"\x04cd", key=b"the second")
    assert offsets(at_alice.get(path, data={"text": '"item": "ab"'})) == [(0, 0)]
    assert offsets(at_alice.get(path, data={"key_part": "second"})) == [(0, 1)]
    assert offsets(at_alice.get(path, data={"key_part": "the", "text": "item"})) == [(0, 1), (0, 0)]
    assert offsets(at_alice.get(path, data={"key_part": "first", "text": '"cd"'})) == []


# --- from the lake ----------------------------------------------------------------------------------------------------


@pytest.fixture
def lake(path, orders, admin, instance, tmp_path):
    """Of partition 0 the first five have expired, and are in the table of a load."""
    physical = f"{instance.id.removeprefix('ins-')}.orders"
    for n in range(8):
        orders(0, b"value %d" % n)
    admin.messages.delete_before(physical, {0: 5})
    topic_id, uri = admin.topics[physical].id, str(tmp_path / "table")
    commit(uri, topic_id, [(0, n, 1000 + n, None, b"value %d" % n, ()) for n in range(5)], {0: (0, 5)})
    load = load_row(instance, folder=f"file:{uri}")
    run = LoadRun(load=load, organisation=load.organisation, asked_at=LONG_AGO, topic_id=topic_id)
    run.save(force_insert=True)
    return tmp_path / "table"


def test_what_has_expired_is_shown_from_the_lake_and_marked(at_alice, path, lake):
    page = at_alice.get(path, data={"partition": "0", "begin": "offset", "offset": "2"})
    assert offsets(page) == [(0, offset) for offset in (7, 6, 5, 4, 3, 2)]
    text = text_of(page)
    assert page.content.decode().count('<span class="sub">from the lake</span>') == 3
    assert "What is from the lake does not." in text
    older = at_alice.client.get(link(page, "Older"))
    assert offsets(older) == [(0, 1), (0, 0)]
    assert link(older, "Older") is None
    assert offsets(at_alice.client.get(link(older, "Newer"))) == offsets(page)
    one = text_of(at_alice.get(f"{path}/0/2"))
    assert "the table of load-000000000001" in one
    assert "value 2" in one
    assert at_alice.get(f"{path}/0/2", data={"download": "1"}).content == b"value 2"
    assert "lake" not in text_of(at_alice.get(path))


def test_a_viewer_sees_that_it_is_from_the_lake_and_no_content(at_viewer, path, lake):
    page = at_viewer.get(path, data={"partition": "0", "begin": "offset", "offset": "2"})
    assert "from the lake" in text_of(page)
    assert "value 2" not in page.content.decode()
    assert at_viewer.get(f"{path}/0/2", data={"download": "1"}).status_code == 403


def test_a_table_that_cannot_be_read_is_said_beside_the_offset_in_both_languages(at_alice, path, lake):
    shutil.rmtree(lake)
    asked = {"partition": "0", "begin": "offset", "offset": "2"}
    page = at_alice.get(path, data=asked)
    assert page.status_code == 422
    assert (
        "the table of load-000000000001 may have what has expired, but cannot be read: it is no longer there"
        in text_of(page)
    )
    assert "it is no longer there" in text_of(at_alice.get(f"{path}/0/2"))
    chinese = text_of(at_alice.get(path, data=asked, HTTP_ACCEPT_LANGUAGE="zh-hans"))
    assert "load-000000000001 的表中可能有已过期的消息" in chinese
    assert "它已不存在" in chinese
    assert "may have" not in chinese


# --- any bytes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [{}, {"HTTP_HX_REQUEST": "true"}])
def test_what_looks_like_html_is_text(at_alice, path, orders, part):
    document = json.dumps({SCRIPT.decode(): [SCRIPT.decode()]}).encode()
    header = (SCRIPT.decode(), SCRIPT)
    for value in (SCRIPT, document):
        orders(0, value, key=SCRIPT, headers=(header,))
    pages = [at_alice.get(path), *(at_alice.client.get(at_alice.address(f"{path}/0/{n}"), **part) for n in (0, 1))]
    for page in pages:
        assert page.status_code == 200
        html = page.content.decode()
        assert "<script>alert" not in html
        assert "<img" not in html
        assert "&lt;script&gt;alert" in html


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "null: its key is deleted"),
        (b"", "0 B"),
        (b"\xff\xfe\x00", "ff fe 00"),
        (b"text\x00\x1b[31m", "Text"),
        (b"x" * 1_000_000, "The beginning only"),
        (b'{"a": ' * 5_000, "Text"),
        (b"[" * 100_000, "Text"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "Text"),
        (b'{"n": NaN, "a": 1, "a": 2}', "3 in {}"),
        ("é".encode() * 40_000, "The beginning only"),
    ],
)
def test_any_value_has_a_page(at_alice, path, orders, value, said):
    orders(0, value, key=b"\x80")
    assert at_alice.get(path).status_code == 200
    page = at_alice.get(f"{path}/0/0")
    assert page.status_code == 200
    assert said in text_of(page)
    assert len(page.content) < 600_000


def test_a_json_value_is_a_tree_that_opens_and_closes_what_it_opens(at_alice, path, orders):
    orders(0, b'{"order": {"lines": [1, "two", null, true]}, "empty": {}}')
    html = at_alice.get(f"{path}/0/0").content.decode()
    for name in ("order", "lines", "empty"):
        assert f"<b>{name}</b>" in html
    assert html.count("<details") == html.count("</details>")


def test_a_key_and_headers_are_opened_as_a_value_is(at_alice, path, orders):
    headers = (("trace", b'{"span": [7]}'), ("none", None), ("raw", b"\xff\xfe"), ("long", b"h" * 2_000))
    orders(0, b"x", key=b'{"customer": 12}', headers=headers)
    page = at_alice.get(f"{path}/0/0")
    html, text = page.content.decode(), text_of(page)
    for name in ("customer", "span"):
        assert f"<b>{name}</b>" in html
    for label in ("Key as JSON", "Key in hex", "Header as JSON", "Header in hex"):
        assert f'aria-label="{label}"' in html
    assert "ff fe" in text
    assert "h" * 2_000 in text
    assert html.count("<details") == html.count("</details>")


def test_headers_that_are_many_do_not_make_a_page_without_end(at_alice, path, orders):
    orders(0, b"x", headers=tuple((f"h{n}", b"\xff" * 1_000) for n in range(500)))
    page = at_alice.get(f"{path}/0/0")
    assert "h499" in text_of(page)
    assert page.content.decode().count("Header in hex") == contents.LONGEST_HEADERS // 1_000
    assert len(page.content) < 600_000


def test_of_very_many_small_headers_the_first_are_shown_and_fewer_opened(at_alice, path, orders):
    orders(0, b"x", headers=tuple((f"h{n}", b"1") for n in range(contents.MOST_HEADERS + 7)))
    page = at_alice.get(f"{path}/0/0")
    html, text = page.content.decode(), text_of(page)
    assert html.count("Header in hex") == contents.MOST_OPENED
    assert f"h{contents.MOST_HEADERS - 1} " in text
    assert f"h{contents.MOST_HEADERS} " not in text
    assert "Headers that are not shown here: 7. REST and the command line show all of them." in text


@pytest.mark.parametrize("timestamp_ms", [-5, 2**62])
def test_a_time_of_no_calendar_is_told_as_it_is(at_alice, path, orders, timestamp_ms):
    orders(0, b"x", timestamp_ms=timestamp_ms)
    assert at_alice.get(path).status_code == 200
    assert at_alice.get(f"{path}/0/0").status_code == 200


def test_a_value_is_downloaded_as_it_is_and_never_shown_by_the_browser(at_alice, path, orders):
    orders(1, SCRIPT)
    answer = at_alice.get(f"{path}/1/0", data={"download": "1"})
    assert answer.content == SCRIPT
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="orders-1-0.bin"'
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


# --- live -------------------------------------------------------------------------------------------------------------


def poll_of(page):
    found = re.search(r'<tbody id="tail" hx-get="([^"]*)"', page.content.decode())
    return unescape(found[1]) if found else None


def test_a_live_page_adds_what_comes_and_nothing_twice(at_alice, path, orders):
    orders(0, b"before")
    page = at_alice.get(path, data={"live": "1"})
    assert offsets(page) == [(0, 0)]
    poll = poll_of(page)
    assert at_alice.client.get(poll).status_code == 204
    orders(1, b"one")
    orders(0, b"two")
    more = at_alice.client.get(poll)
    assert offsets(more) == [(0, 1), (1, 0)]
    assert at_alice.client.get(poll_of(more)).status_code == 204


def test_a_live_page_keeps_its_filter(at_alice, path, orders):
    orders(0, b"x")
    poll = poll_of(at_alice.get(path, data={"live": "1", "text": "needle"}))
    orders(0, b"hay")
    orders(0, b"needle")
    assert offsets(at_alice.client.get(poll)) == [(0, 2)]


def test_a_topic_that_is_too_quick_is_shown_with_what_was_left_out(at_alice, path, orders):
    poll = poll_of(at_alice.get(path, data={"live": "1"}))
    for n in range(80):
        orders(0, b"%d" % n)
    page = at_alice.client.get(poll)
    assert len(offsets(page)) == 50
    assert "30 messages were skipped here" in text_of(page)
    assert at_alice.client.get(poll_of(page)).status_code == 204


def test_a_live_page_that_nobody_looks_at_ends(at_alice, path, orders):
    poll = re.sub(r"shown=\d+", "shown=499", poll_of(at_alice.get(path, data={"live": "1"})))
    orders(0, b"x")
    page = at_alice.client.get(poll)
    assert poll_of(page) is None
    assert "no longer renews itself" in text_of(page)


def test_a_live_page_says_calmly_that_brokers_are_away_and_goes_on(at_alice, path, orders, admin):
    orders(0, b"x")
    poll = poll_of(at_alice.get(path, data={"live": "1"}))
    admin.away = True
    page = at_alice.client.get(poll)
    assert "The cluster does not answer." in text_of(page)
    assert poll_of(page) is not None


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"partition": "9"}, "Partition: The topic has no partition 9"),
        ({"partition": "first"}, "Partition: Enter a whole number."),
        ({"key": "0", "key_as": "hex"}, "Key is: This is no hex"),
    ],
)
def test_a_live_page_says_what_its_form_refuses_and_asks_no_more(at_alice, path, orders, asked, said):
    page = at_alice.get(f"{path}/tail", data=asked)
    assert page.status_code == 200  # what has another status is not put into the page
    assert said in text_of(page)
    assert poll_of(page) is None


def test_brokers_that_are_away_are_a_calm_sentence(at_alice, path, orders, admin):
    orders(0, b"x")
    admin.away = True
    page = at_alice.get(path)
    assert "Refresh" not in page
    assert page.status_code == 503
    assert "The cluster does not answer." in text_of(page)


def test_a_page_that_waits_for_bandwidth_asks_again_by_itself(at_alice, path, orders, admin):
    orders(0, b"x")
    admin.messages.wait_s = 2.5
    at_alice.get(path)
    page = at_alice.get(path)
    assert (page.status_code, page["Refresh"]) == (429, "3")
    assert "tries again by itself in 3 s" in text_of(page)


def test_a_live_page_that_waits_for_bandwidth_goes_on(at_alice, path, orders, admin):
    admin.messages.wait_s = 2.5
    at_alice.get(path)
    page = at_alice.get(f"{path}/tail")
    assert "bandwidth is used up" in text_of(page)
    assert poll_of(page) is not None


def test_half_a_surrogate_pair_in_json_is_shown_as_json_writes_it(at_alice, path, orders):
    orders(0, rb'{"x": "\ud800", "\udfff": ["\ud83d\ude00"]}')
    page = at_alice.get(f"{path}/0/0")
    assert page.status_code == 200
    for text in (r"\ud800", r"\udfff", "😀"):
        assert text in text_of(page)


# --- who may ----------------------------------------------------------------------------------------------------------


def test_a_viewer_sees_sizes_and_no_content(at_viewer, path, orders):
    orders(0, b"a secret", key=b"of whom", headers=(("which", b"kind"),))
    pages = [at_viewer.get(path), at_viewer.get(f"{path}/0/0")]
    for page in pages:
        assert page.status_code == 200
        for word in ("a secret", "of whom", "which", "kind", b"a secret".hex(" ")):
            assert word not in page.content.decode().replace("which rule", "")
        assert "8 B" in text_of(page)
    assert at_viewer.get(path, data={"text": "secret"}).status_code == 422
    assert at_viewer.get(f"{path}/0/0", data={"download": "1"}).status_code == 403


def test_only_owners_see_the_way_to_delete_records(at_alice, at_bob, path, orders):
    for page in (path, path.removesuffix("/messages")):
        assert "Delete records" in text_of(at_alice.get(page))
        assert "Delete records" not in text_of(at_bob.get(page))


# --- writing and deleting ---------------------------------------------------------------------------------------------


def test_a_message_is_sent_and_found(at_alice, path, orders):
    answer = at_alice.post(
        f"{path}/new", {"key": "k", "value": "hällo\r\nthere", "headers": "from: shop\nb:", "partition": "2"}
    )
    assert answer.status_code == 302
    page = at_alice.client.get(answer.headers["Location"])
    assert "The message is at offset 0 of partition 2." in text_of(page)
    body = text_of(at_alice.get(f"{path}/2/0"))
    assert "hällo there" in body
    assert "from shop" in body


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"value": "x", "tombstone": "on"}, "Leave this empty"),
        ({"value": "x", "headers": "nothing"}, "is no name: value"),
        ({"value": "x", "partition": "9"}, "The topic has no partition 9"),
        ({"value": "x", "key": "k", "key_is_empty": "on"}, "Leave this empty"),
        ({"value": "0", "value_as": "hex"}, "This is no hex"),
        ({"value": "x", "key": "a", "key_as": "base64"}, "This is no base64"),
        ({"value": "x", "time": "1969-12-31T23:59:59"}, "1970 at the earliest"),
    ],
)
def test_what_cannot_be_sent_is_said_beside_its_field(at_alice, path, form, said):
    page = at_alice.post(f"{path}/new", form)
    assert page.status_code == 422
    assert said in text_of(page)


def test_records_are_counted_first_and_deleted_once_the_name_was_typed(at_alice, path, orders, admin):
    for _ in range(5):
        orders(1, b"x")
    form = {"partitions": "1", "before": "3"}
    deletion = path.replace("messages", "delete-records")
    assert "3 records of partition 1 would be deleted" in text_of(at_alice.post(deletion, form | {"preview": "1"}))
    for typed in ({}, {"confirmation": "ordres"}):
        assert at_alice.post(deletion, form | typed).status_code == 422
    assert not admin.groups.rounds["delete_before"]
    answer = at_alice.post(deletion, form | {"confirmation": "orders"})
    assert answer.status_code == 302
    assert offsets(at_alice.client.get(answer.headers["Location"])) == [(1, 4), (1, 3)]
    assert AuditEntry.objects.unscoped("a test").get(action="topic.records.delete").detail["records"] == 3


def test_a_message_of_any_bytes_with_an_empty_key_and_a_time_is_sent(at_alice, path, admin, instance):
    physical = f"{instance.id.removeprefix('ins-')}.orders"
    sent = {
        "value": "//8A",
        "value_as": "base64",
        "key_is_empty": "on",
        "time": "2026-01-02T03:04:05",
        "partition": "1",
    }
    assert at_alice.post(f"{path}/new", sent).status_code == 302
    message = admin.messages.extras[physical, 1, 0]
    assert (message.key, message.value, message.timestamp_ms) == (b"", b"\xff\xff\x00", 1_767_323_045_000)
    assert at_alice.post(f"{path}/new", {"value": "x", "key": "00 01", "key_as": "hex", "partition": "1"})
    assert admin.messages.extras[physical, 1, 1].key == b"\x00\x01"
    assert at_alice.post(f"{path}/new", {"value": "x", "partition": "1"})
    assert admin.messages.extras[physical, 1, 2].key is None


def test_before_records_of_several_partitions_go_it_is_said_which_groups_would_lose_them(
    at_alice, path, orders, admin, instance
):
    physical = f"{instance.id.removeprefix('ins-')}.orders"
    for n in range(9):
        orders(n % 3, b"x")
    admin.groups.found[f"{instance.id.removeprefix('ins-')}.billing"] = FakeGroup({(physical, 0): 1, (physical, 2): 3})
    admin.groups.found[f"{instance.id.removeprefix('ins-')}.finished"] = FakeGroup({(physical, 0): 3})
    deletion, form = path.replace("messages", "delete-records"), {"partitions": "0, 2", "everything": "on"}
    text = text_of(at_alice.post(deletion, form | {"preview": "1"}))
    assert "3 records of partition 0 would be deleted" in text
    assert "3 records of partition 2 would be deleted" in text
    assert "would lose records that they have not read: billing : 2 records" in text
    assert "finished" not in text
    admin.groups.silent.add(("127.0.0.1", 2))
    text = text_of(at_alice.post(deletion, form | {"preview": "1"}))
    assert "Which groups have not read them is not known now." in text
    answer = at_alice.post(deletion, form | {"confirmation": "orders"})
    assert "6 records of 2 partitions were deleted." in text_of(at_alice.client.get(answer.headers["Location"]))
    assert "would be deleted" not in text_of(at_alice.post(deletion, form | {"preview": "1"}))


def test_each_partition_may_have_an_offset_of_its_own(at_alice, path, orders):
    for n in range(9):
        orders(n % 3, b"x")
    deletion = path.replace("messages", "delete-records")
    form = {"partitions": "0", "before": "2", "own": "1: 1\n\n2: all", "confirmation": "orders"}
    assert "2 records of partition 0 would be deleted" in text_of(at_alice.post(deletion, form | {"preview": "1"}))
    page = at_alice.client.get(at_alice.post(deletion, form).headers["Location"])
    assert "6 records of 3 partitions were deleted." in text_of(page)
    assert sorted(offsets(page)) == [(0, 2), (1, 1), (1, 2)]


@pytest.mark.parametrize(
    ("form", "field", "said"),
    [
        ({}, "partitions", "Name at least one."),
        ({"partitions": "0"}, "before", "Say an offset, or tick"),
        ({"partitions": "0", "before": "-1"}, "before", "greater than or equal to 0"),
        ({"partitions": "0", "before": "1", "everything": "on"}, "before", "Leave this empty, or untick"),
        ({"partitions": "0-2", "before": "1", "own": "2: 1"}, "own", "Partition 2 is named twice."),
        ({"own": "2: 1\n2: all"}, "own", "Partition 2 is named twice."),
        ({"own": "2: -1"}, "own", "is no partition: offset."),
    ],
)
def test_what_is_not_said_of_a_deletion_is_asked_for_beside_its_field(at_alice, path, orders, form, field, said):
    page = at_alice.post(path.replace("messages", "delete-records"), form | {"preview": "1"})
    assert page.status_code == 422
    assert said in problem_beside(page, field)


def test_a_partition_that_is_not_there_is_said_beside_its_field(at_alice, path, orders):
    deletion = path.replace("messages", "delete-records")
    for typed, said in (("7", "The topic has no partition 7"), ("a", "is no partition"), ("0-500", "no range")):
        page = at_alice.post(deletion, {"partitions": typed, "before": "0", "preview": "1"})
        assert said in problem_beside(page, "partitions")


def test_a_member_deletes_no_records(at_bob, path, orders, admin):
    orders(0, b"x")
    deletion = path.replace("messages", "delete-records")
    assert "Only owners" in text_of(at_bob.get(deletion))
    assert at_bob.post(deletion, {"partitions": "0", "before": "1", "confirmation": "orders"}).status_code == 403
    assert not admin.groups.rounds["delete_before"]


# --- contents, which are pure -----------------------------------------------------------------------------------------


def test_a_letter_that_the_cut_has_gone_through_is_left_out():
    assert contents.text_of("aé".encode()[:2], is_cut=True) == "a"
    assert contents.text_of("aé".encode()[:2]) is None
    assert contents.text_of(b"a\xff\xff\xff\xff", is_cut=True) is None


def test_a_tree_is_of_objects_and_arrays_of_a_size_to_be_read():
    assert contents.tree(b"17") is None
    assert contents.tree(b'{"a": }') is None
    assert contents.tree(json.dumps(list(range(contents.MOST_NODES + 1))).encode()) is None
    assert contents.tree(b'{"a": [' + b"1, " * contents.LARGEST_JSON + b"1]}") is None


def test_hex_is_of_sixteen_bytes_a_line():
    rows = contents.hex_rows(bytes(range(40)))
    assert [(row.offset, len(row.octets.split())) for row in rows] == [("000000", 16), ("000010", 16), ("000020", 8)]
    assert contents.hex_rows(b"A<\x00")[0].text == "A<."
