"""Where text stands in tables and documents, and how numbers, moments and names are written."""

from __future__ import annotations

import time

import pytest

from controlplane.cli import tables
from controlplane.cli.tables import columns
from controlplane.cli.values import cell, in_bytes, moment, number, plain

ROWS = [
    {"name": "a-rather-long-name-of-a-topic", "partitions": 12, "state": "running"},
    {"name": "b", "partitions": 3, "state": "failed"},
]


def texts(lines):
    return tables.texts(lines)


def test_numbers_stand_to_the_right():
    assert texts(tables.listing(ROWS[1:] + ROWS[:1], columns("partitions", "name"), width=None)) == [
        "partitions  name",
        "         3  b",
        "        12  a-rather-long-name-of-a-topic",
    ]


def test_wide_letters_take_two_columns():
    lines = texts(tables.listing([{"a": "日本", "b": "x"}, {"a": "abcd", "b": "y"}], columns("a", "b"), width=None))
    assert lines == ["a     b", "日本  x", "abcd  y"]


def test_a_document_has_its_lists_below():
    found = {
        "name": "t",
        "config": {"a.b": "1"},
        "empty": {},
        "parts": [{"n": 0, "in": {"x": True}}, {"n": 10}],
        "pem": "A\nB\n",
    }
    assert texts(tables.document(found, width=None)) == [
        "name        t",
        "config.a.b  1",
        "empty       -",
        "",
        "parts",
        " n  in.x",
        " 0  yes",
        "10  -",
        "",
        "pem",
        "A",
        "B",
    ]


def test_a_path_may_count():
    assert tables.value_at({"members": [1, 2]}, "members.#") == 2
    assert tables.value_at({"a": None}, "a.b") is None


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("x", None, "-"),
        ("x", "", "-"),
        ("x", True, "yes"),
        ("x", 5.0, "5"),
        ("x", 0.1234567, "0.123457"),
        ("x", 10_000_000, "10000000"),
        ("storage_used_bytes", 1_782_579, "1.7 MiB"),
        ("stored_byte_hours", 1024, "1 KiB h"),
        ("created_at", "2026-11-21T09:00:07.123456Z", "2026-11-21 09:00:07Z"),
        ("created_at", "2026-11-21T09:00:07+02:00", "2026-11-21 07:00:07Z"),
        ("created_at", "2026-11-21T09:00:07", "2026-11-21T09:00:07"),
        ("hour", "2026-11-21", "2026-11-21"),
        ("x", "2026-11-21T09:00:07Z", "2026-11-21T09:00:07Z"),
        ("month", "2026-11", "2026-11"),
        ("whitelist", ["10.0.0.0/8", "::/0"], "10.0.0.0/8, ::/0"),
        ("whitelist", [], "-"),
        ("partitions", [{"topic": "t", "partitions": [0, 1]}], "topic=t, partitions=0, 1"),
    ],
)
def test_values(name, value, text):
    assert cell(name, value) == text


def test_bytes():
    assert [in_bytes(value) for value in (0, 1023, 1024, 150 * 2**20, 2**60)] == [
        "0 B",
        "1023 B",
        "1 KiB",
        "150 MiB",
        "1024 PiB",
    ]


def test_plain_text_keeps_letters():
    assert plain("größe 日本") == "größe 日本"
    assert plain("a\u202eb\x07") == "a\\u202eb\\x07"


def test_columns_have_the_last_word_of_their_path_or_a_title_of_their_own():
    assert columns("id", "a.b.c", health="health.state") == (("id", "id"), ("c", "a.b.c"), ("health", "health.state"))


def test_what_is_no_list_has_no_count_and_what_is_no_object_no_members():
    assert tables.value_at({"members": None}, "members.#") is None
    assert tables.value_at({"a": [1]}, "a.b") is None
    assert tables.value_at({"a": {"b": {"c": 3}}}, "a.b.c") == 3


def test_a_cell_is_written_by_the_last_word_of_its_path():
    row = {"use": {"stored_bytes": 2048}}
    assert texts(tables.listing([row], columns("use.stored_bytes"), width=None)) == ["stored_bytes", "       2 KiB"]


def test_an_empty_list_is_its_titles():
    assert tables.listing([], columns("a", "b"), width=None) == [
        [("a", "bold"), ("", ""), ("  ", ""), ("b", "bold"), ("", "")]
    ]
    assert texts(tables.listing([], columns("a", "b"), width=1)) == ["a  b"]


@pytest.mark.parametrize(
    ("state", "style"),
    [("running", "green"), ("succeeded", "green"), ("failed", "red"), ("creating", "yellow"), ("deleted", "")],
)
def test_states_have_colours_in_columns_of_states(state, style):
    row = {"state": state, "name": state, "health": state}
    (_, line) = tables.listing([row], columns("state", "name", "health"), width=None)
    assert [span for span in line if span[0].strip()] == [(state, style), (state, ""), (state, style)]
    assert (state, style) in tables.document({"health": {"state": state}}, width=None)[0]
    assert (state, "") in tables.document({"name": state}, width=None)[0]


def test_titles_are_bold():
    (head, _) = tables.listing(ROWS[1:], columns("name"), width=None)
    assert head[0] == ("name", "bold")
    assert tables.document({"a": 1, "list": [{"b": 2}]}, width=None)[2] == [("list", "bold")]
    assert tables.document({"a": "x\ny"}, width=None)[0] == [("a", "bold")]


def test_a_list_that_just_fits_stays_a_list():
    wanted = columns("name", "partitions")
    widest = len("a-rather-long-name-of-a-topic") + 2 + len("partitions")
    assert len(tables.listing(ROWS, wanted, width=widest)) == 3
    assert texts(tables.listing(ROWS, wanted, width=widest - 1)) == [
        "name        a-rather-long-name-of-a-topic",
        "partitions  12",
        "",
        "name        b",
        "partitions  3",
    ]


def test_lists_in_a_document_have_the_same_width_to_fit_in():
    found = {"list": [{"a": "x" * 10, "b": "y"}]}
    assert texts(tables.document(found, width=12)) == ["list", "a  xxxxxxxxxx", "b  y"]
    assert texts(tables.document(found, width=13)) == ["list", "a           b", "xxxxxxxxxx  y"]


def test_rows_may_have_different_members():
    found = {"list": [{"a": 1}, {"b": 2}]}
    assert texts(tables.document(found, width=None)) == ["list", "a  b", "1  -", "-  2"]


def test_a_list_of_no_objects_is_a_value():
    assert texts(tables.document({"a": [], "b": [1, 2], "c": [{"x": 1}, 2]}, width=None)) == [
        "a  -",
        "b  1, 2",
        "c  x=1, 2",
    ]


def test_names_in_documents_steer_no_terminal():
    assert texts(tables.document({"a\x1b": {"b\n": "c"}}, width=None)) == ["a\\x1b.b\\n  c"]
    assert texts(tables.document({"a\x1b": [{"b": "c"}], "t\x07": "1\x07\n2"}, width=None)) == [
        "a\\x1b", "b", "c", "", "t\\x07", "1\\x07", "2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "right"),
    [
        (["1", "-2.5", "-"], True),
        (["1.7 MiB", "2"], True),
        (["1", "x"], False),
        (["1.2.3"], False),
        (["X1"], False),
        (["--1"], False),
        (["1 2 3"], True),
    ],
)
def test_a_column_of_numbers_is_one_where_all_are(cells, right):
    lines = texts(tables.grid(["a longer title"], [[each] for each in cells], width=None))
    assert [line.startswith(" ") for line in lines[1:]] == [right] * len(cells)


def test_a_row_has_a_text_for_each_title():
    for width in (None, 1):
        with pytest.raises(ValueError, match="zip"):
            tables.grid(["a"], [["1", "2"]], width=width)


def test_spaces_have_no_style():
    (_, line) = tables.listing([{"n": 1, "longer": 2}], columns("longer", "n"), width=None)
    assert line == [("     ", ""), ("2", ""), ("  ", ""), ("", ""), ("1", "")]
    assert tables.document({"pem": "x\ny"}, width=None) == [[("pem", "bold")], [("x", "")], [("y", "")]]


def test_three_columns_have_two_gaps():
    row = {"a": "x", "b": "y", "c": "z"}
    assert len(tables.listing([row], columns("a", "b", "c"), width=7)) == 2
    assert len(tables.listing([row], columns("a", "b", "c"), width=6)) == 3
    assert len(tables.listing([row], columns("a"), width=1)) == 2


def test_members_far_inside_are_written_as_those_outside():
    inner = {"a": {"b": {"since": "2026-11-21T09:00:00Z", "state": "failed"}}}
    lines = tables.document(inner, width=None)
    assert texts(lines) == ["a.b.since  2026-11-21 09:00:00Z", "a.b.state  failed"]
    assert lines[1][1] == ("failed", "red")
    assert texts(tables.listing([inner], columns("a.b.since"), width=None))[1] == "2026-11-21 09:00:00Z"


def test_what_stands_below_a_document_stands_in_its_order():
    found = {"pem": "A\nB", "list": [{"x": "y"}], "end": "C\nD"}
    assert texts(tables.document(found, width=None)) == ["pem", "A", "B", "", "list", "x", "y", "", "end", "C", "D"]


def test_whole_numbers_are_exact():
    assert number(2**62 + 1) == str(2**62 + 1)
    assert number(100) == "100"


@pytest.fixture
def in_tokyo(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


def test_moments_are_utc_wherever_one_is(in_tokyo):
    assert moment("2026-11-21T09:00:00Z") == "2026-11-21 09:00:00Z"


def test_a_backslash_is_a_letter():
    assert plain("a\\b") == "a\\b"


def test_numbers_have_no_zeros_at_their_end():
    assert [number(value) for value in (5, 5.0, 0.5, 100, 1.0000001, 1e-9)] == ["5", "5", "0.5", "100", "1", "0"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1 B"),
        (1025, "1 KiB"),
        (1536, "1.5 KiB"),
        (1.25 * 2**20, "1.25 MiB"),
        (12.34 * 2**20, "12.3 MiB"),
        (123.4 * 2**30, "123 GiB"),
        (-2048, "-2 KiB"),
        (3 * 2**40, "3 TiB"),
        (10 * 2**10, "10 KiB"),
        (100 * 2**10, "100 KiB"),
        (100.4 * 2**10, "100 KiB"),
        (10.26 * 2**10, "10.3 KiB"),
    ],
)
def test_bytes_have_three_digits(value, text):
    assert in_bytes(value) == text


def test_what_is_no_moment_stays():
    assert [moment(text) for text in ("soon", "2026-11-21", "2026-13-45T09:00:00Z", "a longer text\n")] == [
        "soon", "2026-11-21", "2026-13-45T09:00:00Z", "a longer text\\n",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["created_at", "counted_until", "complete_to", "hour", "time", "since", "first", "last", "from", "to", "at"]
)
def test_moments_are_known_by_the_names_of_members(name):
    assert cell(name, "2026-11-21T09:00:00Z") == "2026-11-21 09:00:00Z"


def test_members_of_members():
    assert cell("x", {"used_bytes": 2048, "at": "2026-11-21T09:00:00Z"}) == "used_bytes=2 KiB, at=2026-11-21 09:00:00Z"
    assert cell("x", {}) == "-"
    assert cell("x", False) == "no"
    assert cell("x", object) == str(object)
