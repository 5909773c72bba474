"""Copies of tables into buckets: a reader of the bucket finds a table that is whole, whenever the copy is killed.

Against a small S3 of our own (`fake_s3`), which checks signatures, and with ``SLUICE_TEST_S3=http://127.0.0.1:5000`` against a
real one, such as `moto_server`, that takes the key ``test`` with the secret ``test-secret``.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.lake import bucket as bucket_module
from controlplane.lake import copy_table, report
from controlplane.lake.bucket import PART_BYTES, Bucket, Credentials
from controlplane.lake.commitlog import CommitLog, below
from controlplane.lake.copying import Copy, stretches
from controlplane.lake.errors import LakeError, RequestError
from tests.support.waiting import promised

from .fake_s3 import ACCESS_KEY, SECRET_KEY, FakeS3
from .folder_table import FolderTable, log

STORE = os.environ.get("SLUICE_TEST_S3", "")
MIB = 1024 * 1024
PREFIX = "lake/orders"


@pytest.fixture
def table(tmp_path):
    return FolderTable(tmp_path / "table")


@pytest.fixture
def store():
    with FakeS3() as running:
        yield running


@pytest.fixture
def copied(tmp_path, table, store):
    """Runs the program; its status and its report."""

    def run(*words, secret=SECRET_KEY, access=ACCESS_KEY, bucket="events", endpoint=None):
        (tmp_path / "keys").write_text(f"access_key={access}\nsecret_key={secret}\n")
        status = copy_table.main(
            ["--from", table.uri, "--bucket", bucket, "--path", PREFIX, "--region", "eu-central-1", "--endpoint",
             endpoint or store.url, "--credentials", str(tmp_path / "keys"), "--report", str(tmp_path / "report"), *words]
        )  # fmt: skip
        told = report.read(tmp_path / "report")
        assert told.status == status
        return told

    return run


def in_bucket(files):
    return {f"{PREFIX}/{path}": content for path, content in files.items()}


# What is copied, and in which order


def test_all_of_a_table_is_copied(table, store, copied):
    table.commit(add=["part-1.parquet", "day=2026-05-01/part-2.parquet"])
    table.commit(add=["part-3.parquet"], remove=["part-1.parquet"])
    table.checkpoint()
    told = copied()
    assert (told.status, told.version) == (0, 1)
    assert told.says.startswith("copied up to version 1: 3 files, ")
    table.commit(add=["part-4.parquet"])
    assert copied("--after", "1").says.startswith("copied up to version 2: 1 file, ")
    assert store.objects == in_bucket(table.everything())


def test_a_version_is_written_after_its_files_and_a_checkpoint_after_its_version(table, store, copied):
    table.commit(add=["a", "b"])
    table.checkpoint(parts=2)
    table.commit(add=["c"])
    table.checkpoint()
    copied()
    names = [key.removeprefix(f"{PREFIX}/") for key in store.order]
    assert sorted(names[:2]) == ["a", "b"]
    assert names[2:] == [
        log(0),
        f"_delta_log/{0:020}.checkpoint.0000000001.0000000002.parquet",
        f"_delta_log/{0:020}.checkpoint.0000000002.0000000002.parquet",
        "c",
        log(1),
        f"_delta_log/{1:020}.checkpoint.parquet",
        "_delta_log/_last_checkpoint",
    ]


def test_a_plain_copy_has_the_data_files_alone(table, store, copied):
    table.commit(add=["a", "b"])
    table.checkpoint()
    assert copied("--plain").version == 0
    table.commit(add=["c"])
    assert copied("--plain", "--after", "0").version == 1
    assert set(store.objects) == {f"{PREFIX}/{name}" for name in "abc"}


def test_a_plain_copy_of_rows_that_were_replaced_is_refused_before_any_of_it_is_written(table, store, copied):
    table.commit(add=["a"])
    assert copied("--plain").version == 0
    table.commit(add=["b"], remove=["a"])
    told = copied("--plain", "--after", "0")
    assert (told.status, told.version) == (1, 0)
    assert "replaces rows" in told.says
    assert set(store.objects) == {f"{PREFIX}/a"}


def test_nothing_is_read_or_listed(table, store, copied):
    table.commit(add=["a"])
    copied()
    assert {method for method, _, _ in store.asked} == {"PUT"}


def test_a_copy_goes_on_behind_the_version_that_it_has(table, store, copied):
    table.commit(add=["a"])
    assert copied().version == 0
    table.commit(add=["b"])
    store.order.clear()
    assert copied("--after", "0").version == 1
    assert store.order == [f"{PREFIX}/b", f"{PREFIX}/{log(1)}"]
    nothing = copied("--after", "1")
    assert (nothing.status, nothing.version, nothing.says) == (0, 1, "nothing to copy after version 1")


def test_what_last_checkpoint_says_is_not_copied_before_that_checkpoint(table, store, copied):
    table.commit(add=["a"])
    table.checkpoint()
    table.commit(add=["b"])
    table.write("_delta_log/_last_checkpoint", b'{"version": 7}')
    copied()
    assert f"{PREFIX}/_delta_log/_last_checkpoint" not in store.objects
    assert f"{PREFIX}/_delta_log/{0:020}.checkpoint.parquet" in store.objects


def test_names_are_decoded_once_and_reach_the_bucket_as_they_are(table, store, copied):
    names = ["day=2026-05-01 10%3A00/ü + &=~$.parquet", "a:b/c*(!)'.parquet"]
    table.commit(add=names)
    assert copied().status == 0
    assert store.objects == in_bucket(table.everything())
    assert f"{PREFIX}/{names[0]}" in store.objects


# What VACUUM has removed


def test_versions_whose_files_are_gone_are_written_with_the_one_that_removes_them(table, store, copied):
    table.commit(add=["a", "b"])
    table.commit(add=["c"])
    table.commit(add=["d"], remove=["a"])
    table.commit(add=["e"])
    table.vacuum()
    assert [stretch.versions for stretch in stretches(CommitLog(table.folder), range(4))] == [(0, 1, 2), (3,)]
    assert copied().status == 0
    names = [key.removeprefix(f"{PREFIX}/") for key in store.order]
    assert sorted(names[:3]) == ["b", "c", "d"]
    assert names[3:] == [log(0), log(1), log(2), "e", log(3)]


def test_a_file_that_is_missing_and_that_the_table_still_has_is_an_error(table, store, copied):
    table.commit(add=["z"])
    table.commit(add=["a"])
    table.commit(add=["b"])
    (table.folder / "a").unlink()
    told = copied()
    assert (told.status, told.version) == (1, 0)
    assert told.says == "a is missing in the table, and version 2 still has it"
    assert f"{PREFIX}/{log(1)}" not in store.objects


def test_a_file_that_was_removed_and_came_again_is_not_taken_for_a_removed_one(table, copied):
    table.commit(add=["a"])
    table.commit(remove=["a"])
    table.commit(add=["a"])
    (table.folder / "a").unlink()
    assert copied().says == "a is missing in the table, and version 2 still has it"


# Tables that are not copied


@pytest.mark.parametrize(
    "named",
    ["/etc/passwd", "../other/part", "a/../../part", "a/%2E%2E/%2e./part", "%2Fetc%2Fpasswd", "file:/etc/passwd",
     "s3a://bucket/part", "a//b", "", "a/", "./a", "a%00b", "%FF"],
)  # fmt: skip
def test_a_name_that_leads_out_of_the_table_is_refused(table, store, copied, named):
    with pytest.raises(LakeError, match="not below the table"):
        below(named)
    table.commit(actions=[{"add": {"path": named}}])
    told = copied()
    assert told.status == 1
    assert told.says.startswith("the log names a file that is not below the table")
    assert store.asked == []


def test_a_link_that_leads_out_of_the_table_is_refused(tmp_path, table, copied):
    table.commit(add=["a"])
    (tmp_path / "outside").write_text("not of this table")
    (table.folder / "a").unlink()
    (table.folder / "a").symlink_to(tmp_path / "outside")
    assert copied().says == "a leads out of the table"


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        (
            {"protocol": {"minReaderVersion": 3, "readerFeatures": ["deletionVectors", "columnMapping"]}},
            "the table has features that are not copied: deletionVectors",
        ),
        ({"add": {"path": "a", "deletionVector": {}}}, "the table has deletion vectors, which are not copied"),
    ],
)
def test_a_table_with_more_than_data_files_is_refused(table, copied, action, sentence):
    table.commit(actions=[action])
    assert copied().says == sentence


def test_a_log_that_does_not_follow_what_was_copied_is_refused(table, copied):
    assert copied().says == "there is no Delta table to copy"
    for name in "abc":
        table.commit(add=[name])
    assert copied("--after", "5").says == "the table ends at version 2, before 5: it is not the one that was copied"
    (table.folder / log(1)).unlink()
    assert copied().says == "version 1 is missing in the log of the table"
    assert copied("--after", "1").version == 2


def test_a_version_that_is_not_json_is_said(table, copied):
    table.commit()
    table.write(log(0), b'{"add": {')
    assert copied().says == "version 0 of the log is not JSON"


# What a bucket refuses


@pytest.mark.parametrize(
    ("wrong", "status", "sentence"),
    [
        ({"access": "other"}, 1, "the bucket refuses the key (InvalidAccessKeyId)"),
        ({"secret": "other"}, 1, "the bucket refuses the key (SignatureDoesNotMatch)"),
        ({"bucket": "elsewhere"}, 8, "the bucket elsewhere does not exist"),
    ],
)
@pytest.mark.parametrize("words", [[], ["--try"]])
def test_a_wrong_key_or_bucket_is_said_at_once(table, store, copied, wrong, status, sentence, words):
    table.commit(add=list("abcdefgh"))
    began = time.monotonic()
    told = copied(*words, **wrong)
    assert (told.status, told.says, told.version) == (status, sentence, None)
    assert time.monotonic() - began < promised(5)


def test_a_trial_needs_no_table_and_leaves_nothing_in_the_bucket(store, copied):
    told = copied("--try")
    assert (told.status, told.version) == (0, None)
    assert (store.objects, store.uploads) == ({}, {})
    assert [method for method, _, _ in store.asked] == ["POST", "DELETE"]
    store.faults = [None, (403, "AccessDenied")]
    assert copied("--try").status == 0, "a key without s3:AbortMultipartUpload can write all the same"
    store.denied = True
    assert copied("--try").says == "the bucket refuses the key (AccessDenied)"
    assert store.objects == {}
    assert len(store.asked) <= 8


def test_a_key_without_the_right_to_write_is_said(table, store, copied):
    table.commit(add=["a"])
    store.denied = True
    assert copied().says == "the bucket refuses the key (AccessDenied)"


def test_no_word_of_a_key_is_written_anywhere(table, copied, caplog, capfd, tmp_path):
    table.commit(add=["a"])
    caplog.set_level(logging.DEBUG, logger="sluice")
    copied(secret="the-secret-itself")
    (tmp_path / "bad").write_text("access_key=the-secret-itself\nnothing=else\n")
    with pytest.raises(RequestError) as error:
        copy_table.credentials_of((tmp_path / "bad").read_text())
    written = caplog.text + "".join(capfd.readouterr()) + str(error.value) + (tmp_path / "report").read_text()
    assert "the-secret-itself" not in written
    assert "the-secret-itself" not in repr(Credentials("a", "the-secret-itself"))


def test_a_store_that_fails_for_a_moment_is_asked_again(table, store, copied):
    table.commit(add=["a"])
    store.faults = [(503, "SlowDown"), (500, "InternalError")]
    assert copied().status == 0
    assert store.objects == in_bucket(table.everything())


def test_a_store_that_keeps_failing_is_said(store):
    store.faults = [(503, "SlowDown")] * 9
    with pytest.raises(LakeError, match=r"^the store of the bucket fails \(SlowDown\)$"):
        target(store, attempts=2).put("key", io.BytesIO(b"x"))
    assert len(store.asked) == 2


def test_a_store_that_is_away_is_said():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{free.getsockname()[1]}"
    away = Bucket("events", "eu-central-1", Credentials("a", "b"), endpoint, attempts=2)
    with pytest.raises(LakeError, match=r"^the store of the bucket does not answer \(EndpointConnectionError\)$"):
        away.put("key", io.BytesIO(b"x"))


def test_a_store_that_is_silent_is_given_up(monkeypatch):
    monkeypatch.setattr(bucket_module, "READ_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        waiting = Bucket("events", "eu-central-1", Credentials("a", "b"), endpoint, attempts=2)
        with pytest.raises(LakeError, match=r"^the store of the bucket does not answer \(ReadTimeoutError\)$"):
            waiting.put("key", io.BytesIO(b"x"))


def test_a_redirect_is_not_followed(store):
    with FakeS3() as other:
        store.faults = [f"{other.url}/events/key"]
        with pytest.raises(LakeError, match="the bucket is not in this region"):
            target(store).put("key", io.BytesIO(b"x"))
        assert other.asked == []


def test_a_region_that_another_one_is_told_for_sends_no_request_to_another_host_and_asks_nothing(store):
    store.faults = [(301, "PermanentRedirect")]
    with pytest.raises(LakeError, match="the bucket is not in this region"):
        target(store).put("key", io.BytesIO(b"x"))
    assert {method for method, _, _ in store.asked} == {"PUT"}


def test_neither_environment_nor_home_folder_change_where_a_copy_goes_and_with_which_key(monkeypatch, tmp_path, store):
    (tmp_path / ".aws").mkdir()
    for name in ("config", "credentials"):
        (tmp_path / ".aws" / name).write_text(
            "[default]\naws_access_key_id=home\naws_secret_access_key=home\naws_session_token=home\nca_bundle=/nowhere\n"
            "endpoint_url=http://127.0.0.1:1\ns3 =\n  addressing_style = virtual\n"
        )
    told = {
        "HOME": str(tmp_path), "AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "other", "AWS_SESSION_TOKEN": "other",
        "AWS_PROFILE": "nobody", "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1",
        "AWS_CA_BUNDLE": "/nowhere", "AWS_REGION": "us-west-1", "AWS_MAX_ATTEMPTS": "50", "AWS_DATA_PATH": "/nowhere",
        "HTTP_PROXY": "http://127.0.0.1:1", "http_proxy": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1",
        "AWS_USE_FIPS_ENDPOINT": "true", "AWS_USE_DUALSTACK_ENDPOINT": "true",
    }  # fmt: skip
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert target(store).put("key", io.BytesIO(b"x")) == 1
    assert list(store.objects.values()) == [b"x"]


@pytest.mark.parametrize(
    ("region", "host"),
    [("eu-central-1", "s3.eu-central-1.amazonaws.com"), ("us-east-1", "s3.us-east-1.amazonaws.com"),
     ("cn-north-1", "s3.cn-north-1.amazonaws.com.cn")],
)  # fmt: skip
def test_without_an_endpoint_the_bucket_has_a_host_of_its_own_at_amazon(region, host):
    amazon = Bucket("events", region, Credentials("a", "b"), attempts=1)
    seen = []
    amazon._client.meta.events.register_last("before-send.s3", lambda request, **_: seen.append(request.url) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        amazon.put("lake/a", io.BytesIO(b"x"))
    assert seen == [f"https://events.{host}/lake/a"]


# Large files


def test_a_large_file_goes_in_parts_and_one_part_is_in_memory_at_a_time(store):
    content = os.urandom(MIB) * 40
    source = io.BytesIO(content)
    tracemalloc.start()
    try:
        assert target(store).put("large", source) == 40 * MIB
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    in_store = 2 * 40 * MIB  # it is in this process: the parts, and what they are joined to
    assert most - in_store < 3 * PART_BYTES
    assert store.part_sizes == [PART_BYTES, PART_BYTES, 8 * MIB]
    assert store.objects == {"large": content}
    assert store.uploads == {}


@pytest.mark.parametrize("size", [0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1])
def test_a_file_of_any_size_arrives_whole(store, size):
    assert target(store).put("file", io.BytesIO(bytes(size))) == size
    assert store.objects == {"file": bytes(size)}


def test_parts_of_an_upload_that_fails_are_removed(store):
    store.faults = [None, None, (403, "AccessDenied")]
    with pytest.raises(LakeError, match="AccessDenied"):
        target(store).put("large", io.BytesIO(bytes(PART_BYTES + 1)))
    assert (store.objects, store.uploads) == ({}, {})


# Kills


class Killed(BaseException):
    pass


class Watched:
    """A bucket in memory. Each object that appears is looked at; after so many the copy is killed."""

    def __init__(self, table):
        self.table, self.objects, self.left = table, {}, None
        self.one_at_a_time = threading.Lock()  # files come in several threads

    def put(self, key, content):
        with self.one_at_a_time:
            return self._put(key, content)

    def _put(self, key, content):
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Killed
        self.objects[key.removeprefix(f"{PREFIX}/")] = content.read()
        self.look()
        return 1

    def look(self):
        """Each version that is there has its files, but for those that the source has lost itself."""
        there = sorted(
            int(match[1]) for match in map(re.compile(r"_delta_log/(\d{20})\.json").fullmatch, self.objects) if match
        )
        assert there == list(range(len(there)))
        for version in there:
            lost = {path for path in self.table.live_at(version) if path not in self.objects}
            assert not {path for path in lost if (self.table.folder / path).exists()}
            assert not lost & self.table.live[-1]
        for name in self.objects:
            if ".checkpoint" in name:
                assert log(int(name[11:31])) in self.objects
        if (hint := self.objects.get("_delta_log/_last_checkpoint")) is not None:
            assert f"_delta_log/{json.loads(hint)['version']:020}.checkpoint.parquet" in self.objects

    def is_whole_at(self, version):
        return log(version) in self.objects and self.table.live_at(version) <= set(self.objects)


class Reported:
    """What is left of a run that was killed."""

    def __init__(self):
        self.version = -1

    def note(self, *, version):
        self.version = version

    def say(self, text):
        pass


STEPS = st.one_of(
    st.tuples(st.just("commit"), st.integers(0, 3), st.integers(0, 2)),
    st.tuples(st.just("checkpoint")),
    st.tuples(st.just("vacuum")),
    st.tuples(st.just("copy"), st.none() | st.integers(0, 12)),
)


@given(steps=st.lists(STEPS, max_size=14))
def test_whenever_a_copy_is_killed_the_bucket_has_a_table_that_is_whole(steps):
    with tempfile.TemporaryDirectory() as folder:
        table = FolderTable(Path(folder) / "table")
        table.commit()
        bucket, reported, vacuumed = Watched(table), Reported(), False
        for what, *how in [*steps, ("copy", None)]:
            if what == "commit":
                adds, removes = how
                table.commit(add=[table.new_file() for _ in range(adds)], remove=sorted(table.live[-1])[:removes])
            elif what == "checkpoint":
                table.checkpoint()
            elif what == "vacuum":
                table.vacuum()
                vacuumed = True
            else:
                (bucket.left,) = how
                try:
                    Copy(CommitLog(table.folder), bucket, PREFIX, reported).run(reported.version)
                    assert reported.version == table.newest
                except Killed:
                    pass
                if reported.version >= 0:
                    assert bucket.is_whole_at(reported.version)
            if not vacuumed:
                there = [version for version in range(table.newest + 1) if log(version) in bucket.objects]
                assert all(map(bucket.is_whole_at, there))
        clean = Watched(table)
        Copy(CommitLog(table.folder), clean, PREFIX, Reported()).run()
        wanted = {
            name: content for name, content in clean.objects.items() if "checkpoint" not in name
        }  # that may come late
        assert {name: bucket.objects.get(name) for name in wanted} == wanted


def test_a_killed_process_goes_on_from_its_report(tmp_path, table, store):
    """SIGKILL, by the store, a request later each time; the next process goes on."""
    for name in "abc":
        table.commit(add=[name, name + name])
    table.checkpoint()
    (tmp_path / "keys").write_text(f"access_key={ACCESS_KEY}\nsecret_key={SECRET_KEY}\n")
    words = [
        sys.executable, "-m", "controlplane.lake.copy_table", "--from", table.uri, "--bucket", "events", "--path", PREFIX,
        "--region", "eu-central-1", "--endpoint", store.url, "--credentials", str(tmp_path / "keys"),
        "--report", str(tmp_path / "report"),
    ]  # fmt: skip
    appear, runs, done = store._appear, 0, None
    while done != 0:
        told = report.read(tmp_path / "report")
        after = [] if told.version is None else ["--after", str(told.version)]
        with subprocess.Popen([*words, *after], stderr=subprocess.DEVNULL) as process:
            left = [4 + runs]

            def one_less(key, body, process=process, left=left):
                appear(key, body)
                left[0] -= 1
                if left[0] == 0:
                    process.kill()

            store._appear = one_less
            done = process.wait(60)
        runs += 1
        assert runs < 9
    assert report.read(tmp_path / "report").version == 2
    assert store.objects == in_bucket(table.everything())
    assert runs > 2


# The command line


@pytest.mark.parametrize(
    "words",
    [["--from", "hdfs://namenode/table"], ["--from", "/lake/orders"], ["--from", "file://host/lake"], ["--path", "a/../b"],
     ["--path", "/"], ["--endpoint", "ftp://store"], ["--endpoint", "http://user:word@store"],
     ["--endpoint", "http://store/path"], ["--bucket", "arn:aws:s3:::x"], ["--after", "-1"], ["--region", "a.b"]],
)  # fmt: skip
def test_words_that_make_no_sense_end_with_status_2(copied, words, capsys):
    with pytest.raises(SystemExit) as end:
        copied(*words)
    assert end.value.code == 2
    assert "must be" in capsys.readouterr().err or words[0] == "--after"


def test_a_file_without_both_keys_ends_with_status_2(table, store, copied):
    table.commit()
    told = copied(secret="")
    assert told.status == 2
    assert told.says == "the file of credentials must have two lines, access_key=… and secret_key=…"


# A real store


@pytest.mark.skipif(not STORE, reason="SLUICE_TEST_S3 names no store that speaks S3")
def test_a_real_store_takes_a_copy(table, copied):
    reader = bucket_module._client(STORE, "eu-central-1", Credentials(ACCESS_KEY, SECRET_KEY), 2, by_path=True)
    name = f"copies-of-tests-{os.getpid()}"
    reader.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    table.commit(add=["day=2026-05-01 10%3A00/ü + &.parquet", "a"])
    table.commit(add=["large"])
    table.write("large", os.urandom(MIB) * 40)
    table.checkpoint()
    assert copied(bucket=name, endpoint=STORE).says.startswith("copied up to version 1")
    kept = reader.list_objects_v2(Bucket=name)["Contents"]
    read = {each["Key"]: reader.get_object(Bucket=name, Key=each["Key"])["Body"].read() for each in kept}
    assert read == in_bucket(table.everything())
    assert (
        copied(bucket="no-such-bucket-anywhere", endpoint=STORE).says
        == "the bucket no-such-bucket-anywhere does not exist"
    )


def target(store, attempts=4):
    return Bucket("events", "eu-central-1", Credentials(ACCESS_KEY, SECRET_KEY), store.url, attempts)
