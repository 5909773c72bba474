"""DescribeLogDirs and AlterReplicaLogDirs: operators see disks, a tenant sees how large its own partitions are."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from dataplane.handlers.table import HANDLERS
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from tests.dataplane.handlers.doors import KEY, asked, internal, tenant, versions

ALL = versions(ApiKey.DESCRIBE_LOG_DIRS)
TENANTS = "/kafka-logs"


def log(path, size=10, end=100):
    return SimpleNamespace(directory=path, size_bytes=size, end_offset=end)


def replica(topic, index, home, *, size=10, end=100, committed=100, is_offline=False):
    kept = log(f"{home}/{topic}-{index}", size, end)
    state = SimpleNamespace(high_watermark=committed, is_offline=is_offline)
    return SimpleNamespace(topic=topic, index=index, log=kept, state=state)


@dataclass
class Disks:
    """The rooms of a broker with three directories, of which one is offline and one cannot be asked how full it is."""

    hosted: list[SimpleNamespace]
    copies: dict[tuple[str, int], SimpleNamespace] = field(default_factory=dict)
    elsewhere: tuple[tuple[str, int], ...] = ()
    moved: list[tuple[str, int, str]] = field(default_factory=list)
    homes: tuple[tuple[str, str | None], ...] = (("/a", None), ("/b", None), ("/broken", "input/output error"))

    def rooms(self):
        found = {(each.topic, each.index): each for each in self.hosted}
        moves = SimpleNamespace(begin=self._begin, future=lambda each: self.copies.get((each.topic, each.index)))
        return {
            "replicas": SimpleNamespace(
                registry=SimpleNamespace(partitions=lambda: iter(self.hosted), get=lambda *key: found.get(key)),
                moves=moves,
            ),
            "logs": SimpleNamespace(directories=lambda: list(self.homes)),
            "doors": SimpleNamespace(files=SimpleNamespace(space=self._space)),
            "metadata": SimpleNamespace(partition=lambda *key: object() if key in self.elsewhere else None),
        }

    def _begin(self, each, path):
        self.moved.append((each.topic, each.index, path))
        return ErrorCode.NONE

    @staticmethod
    def _space(path):
        if path == "/b":
            raise OSError("gone")
        return 1000, 400

    def describe(self, door, topics=None, version=4):
        """{directory: (error, {(topic, partition): (size, lag, is a copy)}, total, usable)}."""
        answer = asked(door, DescribeLogDirsRequest(topics), version, **self.rooms())
        assert answer.error_code == ErrorCode.NONE
        return {
            row.log_dir: (row.error_code, partitions(row), row.total_bytes, row.usable_bytes) for row in answer.results
        }

    def move(self, path, *names, version=2):
        topics = tuple(AlterReplicaLogDirTopic(name, (0,)) for name in names)
        request = AlterReplicaLogDirsRequest((AlterReplicaLogDir(path, topics),))
        answer = asked(internal(), request, version, **self.rooms())
        return {topic.topic_name: topic.partitions[0].error_code for topic in answer.results}


def partitions(row):
    return {
        (topic.name, each.partition_index, each.is_future_key): (each.partition_size, each.offset_lag)
        for topic in row.topics
        for each in topic.partitions
    }


def everyones():
    return [
        replica(f"{KEY}.orders", 0, "/a", size=10),
        replica(f"{KEY}.orders", 1, "/b", size=20, end=90),
        replica(f"{KEY}.closed", 0, "/a"),
        replica("ccccdddd.orders", 0, "/a"),
        replica("__usage", 0, "/a"),
    ]


# --- describing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ALL)
def test_a_tenant_sees_its_own_partitions_in_one_directory_and_no_disk(version):
    told = Disks(everyones()).describe(tenant(), version=version)
    assert told == {TENANTS: (ErrorCode.NONE, {("orders", 0, False): (10, 0), ("orders", 1, False): (20, 10)}, -1, -1)}


def test_a_tenant_that_names_what_is_not_its_own_or_closed_to_it_is_told_nothing_of_it():
    named = tuple(DescribableLogDirTopic(name, (0,)) for name in ("orders", "closed", "ccccdddd.orders", "__usage"))
    assert list(Disks(everyones()).describe(tenant(), named)[TENANTS][1]) == [("orders", 0, False)]


def test_a_tenant_does_not_see_that_a_replica_is_being_moved():
    disks = Disks(everyones(), copies={(f"{KEY}.orders", 0): log("/b/copy.future", 5, 50)})
    assert list(disks.describe(tenant())[TENANTS][1]) == [("orders", 0, False), ("orders", 1, False)]


@pytest.mark.parametrize("version", ALL)
def test_operators_see_each_directory_and_which_one_is_offline(version):
    told = Disks(everyones()).describe(internal(), version=version)
    assert {home: code for home, (code, *_) in told.items()} == {
        "/a": ErrorCode.NONE,
        "/b": ErrorCode.KAFKA_STORAGE_ERROR,
        "/broken": ErrorCode.KAFKA_STORAGE_ERROR,
    }
    assert list(told["/a"][1]) == [
        (f"{KEY}.orders", 0, False),
        (f"{KEY}.closed", 0, False),
        ("ccccdddd.orders", 0, False),
        ("__usage", 0, False),
    ]


@pytest.mark.parametrize("version", ALL)
def test_how_full_a_disk_is_is_told_from_version_4_on(version):
    assert Disks([]).describe(internal(), version=version)["/a"][2:] == ((1000, 400) if version >= 4 else (-1, -1))


def test_a_copy_lags_behind_the_log_and_the_log_behind_what_is_committed():
    moving = replica("t", 0, "/a", size=10, end=90, committed=100)
    disks = Disks([moving], copies={("t", 0): log("/c/t-0.future", 4, 30)}, homes=(("/a", None), ("/c", None)))
    told = disks.describe(internal())
    assert (told["/a"][1], told["/c"][1]) == ({("t", 0, False): (10, 10)}, {("t", 0, True): (4, 60)})


def test_a_log_that_has_more_than_is_committed_lags_by_nothing():
    told = Disks([replica("t", 0, "/a", end=120, committed=100)]).describe(internal())
    assert told["/a"][1] == {("t", 0, False): (10, 0)}


def test_what_is_named_twice_is_told_once_and_what_is_not_here_not_at_all():
    named = (DescribableLogDirTopic("__usage", (0, 0, 5)), DescribableLogDirTopic("ghost", (0,)))
    answer = asked(internal(), DescribeLogDirsRequest(named), 4, **Disks(everyones()).rooms())
    (topic,) = answer.results[0].topics
    assert (topic.name, [each.partition_index for each in topic.partitions]) == ("__usage", [0])


def test_to_name_nothing_is_to_ask_for_the_disks_alone():
    assert Disks(everyones()).describe(internal(), ())["/a"][1] == {}


# --- moving -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ApiKey.ALTER_REPLICA_LOG_DIRS))
def test_each_replica_moves_or_says_by_itself_why_not(version):
    hosted = [replica("here", 0, "/a"), replica("offline", 0, "/broken", is_offline=True)]
    disks = Disks(hosted, elsewhere=(("there", 0),))
    assert disks.move("/a", "here", "offline", "there", "ghost", version=version) == {
        "here": ErrorCode.NONE,
        "offline": ErrorCode.KAFKA_STORAGE_ERROR,
        "there": ErrorCode.REPLICA_NOT_AVAILABLE,
        "ghost": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert disks.moved == [("here", 0, "/a")]


@pytest.mark.parametrize(
    ("path", "code"),
    [("/nowhere", ErrorCode.LOG_DIR_NOT_FOUND), ("/broken", ErrorCode.KAFKA_STORAGE_ERROR)],
)
def test_nothing_moves_to_a_directory_that_is_not_there_or_offline(path, code):
    disks = Disks([replica("here", 0, "/a")])
    assert disks.move(path, "here", "ghost") == {"here": code, "ghost": code}
    assert disks.moved == []


def test_tenants_see_sizes_and_move_nothing():
    assert HANDLERS[ApiKey.DESCRIBE_LOG_DIRS].tenant
    assert not HANDLERS[ApiKey.ALTER_REPLICA_LOG_DIRS].tenant
