"""Rows of a table without Spark: which, how many, how much is read for them, and what of a tenant's own making is refused.

Tables are written by delta-rs; one of Spark is read in test_expired_messages.py.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from arro3.core import Array, ChunkedArray, DataType, Field

from controlplane.lake import lookup, rows
from controlplane.lake.planning import Span
from controlplane.lake.rows import NotReadableError, Row, Rows
from tests.support.bucket import BUCKET, KEY, serving
from tests.support.delta_tables import commit, rows_of

TOPIC = "uvUbeACpREOVy8zWcUjKmQ"
HEADERS = (("a", b"1"), ("größe", None))


def record(partition, offset, value=b"v", key=b"k", headers=()):
    return partition, offset, 1000 + offset, key, value, headers


@pytest.fixture
def uri(tmp_path):
    """A table of three commits: offsets 0 to 89 of two partitions, without those that end in 7."""
    path = tmp_path / "lake" / "orders"
    for number in range(3):
        offsets = [offset for offset in range(30 * number, 30 * (number + 1)) if offset % 10 != 7]
        records = [record(partition, offset, b"%d" % offset) for partition in range(2) for offset in offsets]
        end = 30 * (number + 1)
        commit(str(path), TOPIC, records, {0: (0, end), 1: (0, end)}, sequence=number + 1)
    return f"file://{path}"


def opened(uri, topic_id=TOPIC):
    return Rows(uri, {}, topic_id)


def offsets(found):
    return [row.offset for row in found.rows]


def refused(uri, reason):
    with pytest.raises(NotReadableError) as error:
        opened(uri).read(0, Span(0, 10), 10, 1000)
    assert error.value.reason == reason, error.value
    return str(error.value)


def test_it_says_what_it_has_and_gives_rows_in_their_order(uri):
    table = opened(uri)
    assert table.spans() == {0: Span(0, 90), 1: Span(0, 90)}
    found = table.read(1, Span(25, 35), 100, 10_000)
    assert offsets(found) == [25, 26, 28, 29, 30, 31, 32, 33, 34]
    assert found.upto == 35
    assert found.rows[0] == Row(25, 1025, b"k", b"25", ())


def test_how_far_it_came_is_said_also_where_there_is_nothing(uri):
    table = opened(uri)
    assert table.read(0, Span(27, 28), 5, 100) == rows.Found([], 28)
    assert table.read(0, Span(80, 90), 4, 100).upto == 84
    assert table.read(7, Span(0, 90), 4, 100) == rows.Found([], 90)


def test_many_rows_come_in_several_questions_and_stop_at_the_bytes(uri):
    table = opened(uri)
    assert len(table.read(0, Span(0, 90), 5_000, 2**20).rows) == 81
    few = table.read(0, Span(0, 90), 5_000, 5)
    assert offsets(few) == [0, 1, 2]
    assert few.upto == 3
    assert len(table.read(0, Span(0, 90), 5_000, 1).rows) == 1


def test_key_value_and_headers_are_as_they_were(tmp_path):
    path = tmp_path / "t"
    records = [record(0, 0, None, None), record(0, 1, b"", b"", HEADERS), record(0, 2, b"\xff\x00")]
    commit(str(path), TOPIC, records, {0: (0, 3)})
    found = opened(f"file://{path}").read(0, Span(0, 3), 10, 1000).rows
    assert [(row.key, row.value, row.headers) for row in found] == [(r[3], r[4], r[5]) for r in records]


def test_a_commit_of_somebody_else_hides_no_manifest(uri):
    from deltalake import DeltaTable

    DeltaTable(uri).optimize.compact()
    assert opened(uri).spans() == {0: Span(0, 90), 1: Span(0, 90)}


def test_another_topic_of_the_name_is_not_told_and_not_read(uri):
    table = opened(uri, "another")
    assert table.spans() == {}
    assert table.read(0, Span(0, 90), 10, 1000).rows == []
    with pytest.raises(NotReadableError):
        opened(uri, "' OR 1=1 --")


def test_of_a_large_table_little_is_read(tmp_path):
    """Three files of 18 MB. Of one of them the pages of twenty rows are fetched, and what says where these are."""
    chance = random.Random(7)
    for number in range(3):
        span = range(300 * number, 300 * (number + 1))
        records = [record(0, offset, chance.randbytes(60_000)) for offset in span]
        commit(str(tmp_path / "large"), TOPIC, records, {0: (0, span.stop)}, sequence=number + 1)
    with serving(tmp_path) as bucket:
        question = {"partition": 0, "first": 540, "end": 560, "rows": 20, "bytes": 8 * 2**20}
        _, said = asked(in_bucket(bucket, "large"), question)
        assert [each["row"][0] for each in said if "row" in each] == list(range(540, 560))
        data = [(key, size) for key, size in bucket.asked if key.endswith(".parquet")]
    assert len({key for key, _ in data}) == 1
    assert sum(size for _, size in data) < 7 * 2**20


def test_a_bucket_that_refuses_the_key_or_is_not_there_says_so_soon(tmp_path, uri):
    with serving(tmp_path / "lake") as bucket:
        assert asked(in_bucket(bucket, "orders"))[1] == [{"spans": {"0": [0, 90], "1": [0, 90]}}]
        wrong = {
            "away": in_bucket(bucket, "orders", key="AKIAOTHER"),
            "absent": in_bucket(bucket, "nothing"),
        }
        for reason, question in wrong.items():
            _, (said,) = asked(question, seconds=5)
            assert said["problem"] == reason, said
            assert "secret" not in said["says"]
    _, (said,) = asked(in_bucket(bucket, "orders"), seconds=8)
    assert said["problem"] == "away", said


# --- what somebody has made -------------------------------------------------------------------------------------------


def edited(tmp_path, uri, change):
    """A table of one commit, whose log is that of another table after `change`."""
    own = tmp_path / "own"
    (own / "_delta_log").mkdir(parents=True)
    first = Path(uri.removeprefix("file:"), "_delta_log", "00000000000000000000.json")
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    for action in actions:
        change(action)
    (own / "_delta_log" / "00000000000000000000.json").write_text("\n".join(map(json.dumps, actions)))
    return f"file://{own}"


@pytest.mark.parametrize(
    "form", ["file://{}", "{}", "../lake/orders/{name}", "%2e%2e/lake/orders/{name}", "x/../../lake/orders/{name}"]
)
def test_files_of_another_place_are_not_read(tmp_path, uri, form):
    """delta-rs itself follows all but the last of these."""
    path = uri.removeprefix("file:")

    def change(action):
        if "add" in action:
            name = action["add"]["path"]
            action["add"]["path"] = form.format(f"{path}/{name}", name=name)

    assert "another place" in refused(edited(tmp_path, uri, change), "foreign")


def test_rows_that_are_given_this_topics_id_by_a_partition_column_are_not_read(tmp_path, uri):
    def change(action):
        if "add" in action:
            action["add"]["partitionValues"] = {"topic_id": TOPIC}
        if "metaData" in action:
            action["metaData"]["partitionColumns"] = ["topic_id"]

    refused(edited(tmp_path, uri, change), "foreign")


def test_features_that_change_what_a_file_says_are_refused(tmp_path, uri):
    def change(action):
        if "protocol" in action:
            features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
            action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **features}

    refused(edited(tmp_path, uri, change), "foreign")


def test_other_columns_are_refused(tmp_path):
    table = rows_of(TOPIC, [record(0, 0)])
    at = table.schema.names.index("offset")
    table = table.set_column(at, Field("offset", DataType.utf8()), ChunkedArray([Array(["0"], DataType.utf8())]))
    commit(str(tmp_path / "t"), TOPIC, [], {0: (0, 1)}, table=table)
    refused(f"file://{tmp_path}/t", "foreign")


@pytest.mark.parametrize("keep", [0, 7, 300])
def test_garbage_in_files_is_damage(uri, tmp_path, keep):
    for path in (tmp_path / "lake" / "orders").glob("*.parquet"):
        path.write_bytes(path.read_bytes()[:keep] + os.urandom(500))
    refused(uri, "broken")


def test_a_damaged_log_is_damage_and_no_table_is_absent(uri, tmp_path):
    (tmp_path / "lake" / "orders" / "_delta_log" / "00000000000000000001.json").write_text("{garbage")
    refused(uri, "broken")
    refused(f"file://{tmp_path}/nowhere", "absent")
    (tmp_path / "empty").mkdir()
    refused(f"file://{tmp_path}/empty", "absent")


def test_a_row_that_is_there_twice_comes_once(tmp_path):
    commit(str(tmp_path / "t"), TOPIC, [record(0, n % 3) for n in range(9)], {0: (0, 3)})
    assert offsets(opened(f"file://{tmp_path}/t").read(0, Span(0, 3), 10, 1000)) == [0, 1, 2]


def test_without_the_library_it_says_so(uri, monkeypatch):
    monkeypatch.setitem(sys.modules, "deltalake", None)
    refused(uri, "not_installed")


# --- the program ------------------------------------------------------------------------------------------------------


def asked(*lines, seconds=20):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run(
        [sys.executable, "-m", lookup.__name__],
        input=text,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def which(uri, **members):
    return {"uri": uri, "options": {}, "topic_id": TOPIC, "within_s": 10} | members


def in_bucket(bucket, path, key=KEY):
    options = {
        "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": bucket.endpoint, "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false", "AWS_ALLOW_HTTP": "true",
        "connect_timeout": "2s", "timeout": "4s", "max_retries": "1", "retry_timeout": "4s",
    }  # fmt: skip
    return which(f"s3://{BUCKET}/{path}", options=options)


def test_it_answers_line_by_line(uri):
    question = {"partition": 0, "first": 6, "end": 9, "rows": 5, "bytes": 1000}
    assert asked(which(uri), question, question | {"first": 8}) == (
        0,
        [
            {"spans": {"0": [0, 90], "1": [0, 90]}},
            {"row": [6, 1006, "aw==", "Ng==", []]},
            {"row": [8, 1008, "aw==", "OA==", []]},
            {"upto": 9},
            {"row": [8, 1008, "aw==", "OA==", []]},
            {"upto": 9},
        ],
    )
    status, (said,) = asked(which(uri + "x"))
    assert (status, said["problem"]) == (0, "absent")
    status, (said,) = asked(["no question"])
    assert (status, said["problem"]) == (0, "broken")


def test_it_ends_by_itself_when_its_time_is_up(uri, tmp_path):
    """Also within the library, which waits here for a store that says nothing."""
    with serving(tmp_path) as bucket:
        bucket.holds.set()
        question = in_bucket(bucket, "lake/orders") | {"within_s": 1.5}
        question["options"] |= {"timeout": "60s"}
        began = time.monotonic()
        status, said = asked(question)
    assert (status < 0, said) == (True, [])
    assert time.monotonic() - began < 10


def test_it_gets_no_more_memory_than_it_may_have(tmp_path):
    """A value of 600 MB of zeros, which compress well: a file of a tenant's, not of Kafka's."""
    make = f"""
from tests.support.delta_tables import commit
commit({str(tmp_path / "t")!r}, {TOPIC!r}, [(0, 0, 0, None, bytes(600 * 2**20), ())], {{0: (0, 1)}})
"""
    subprocess.run([sys.executable, "-c", make], check=True, timeout=100)
    status, said = asked(
        which(f"file://{tmp_path}/t"), {"partition": 0, "first": 0, "end": 1, "rows": 1, "bytes": 10}, seconds=30
    )
    assert said[0] == {"spans": {"0": [0, 1]}}
    assert status != 0 or said[1].get("problem") == "broken"
    assert not any("row" in each for each in said)


def test_nothing_waits_for_it_when_whoever_asked_is_gone(uri):
    process = subprocess.Popen(
        [sys.executable, "-m", lookup.__name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        process.stdin.write(json.dumps(which(uri)) + "\n")
        process.stdin.flush()
        assert "spans" in json.loads(process.stdout.readline())
        killer = threading.Timer(10, process.kill)
        killer.start()
        process.stdin.close()
        assert process.wait() == 0
        killer.cancel()
