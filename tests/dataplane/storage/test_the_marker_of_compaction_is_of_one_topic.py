"""`compacted-to` keeps recovery from looking where compaction left gaps: of this topic, not of one that had its name."""

from uuid import UUID

import pytest

from dataplane.config import Settings
from dataplane.records.batch import Record, build_batch
from dataplane.storage.cleaner import marker
from dataplane.storage.log import appending
from tests.dataplane.storage.cleaning import COMPACT, Cleaning, Clock
from tests.dataplane.storage.support import DIRECTORY, TOPIC_ID, append, new_files, open_log, stage
from tests.dataplane.storage.test_the_manager_finds_its_logs_again import manager
from tests.support.memory_files import MemoryFiles

FORMER, LATTER = UUID(int=1), UUID(int=2)


def with_marker(content: bytes):
    """A log of three batches, opened again after a crash beside such a marker."""
    files = new_files()
    log = open_log(files)
    for value in ("a", "b", "c"):
        append(log, value)
    files.write_file(f"{DIRECTORY}/{marker.COMPACTED_TO}", content)
    return open_log(files, clean=False)


def test_the_topics_own_marker_says_what_is_on_disk():
    assert with_marker(f"2 {TOPIC_ID}\n".encode()).compacted_to == 2


def test_a_marker_of_another_topics_life_is_ignored():
    assert with_marker(f"2 {LATTER}\n".encode()).compacted_to == 0


def test_a_marker_without_a_topic_as_it_was_written_before_is_believed():
    assert with_marker(b"2\n").compacted_to == 2


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"two\n", b"2 of another kind\n", b"\xff\n", f"{TOPIC_ID} 2\n".encode()]
)
def test_a_damaged_marker_says_nothing(content):
    assert with_marker(content).compacted_to == 0


def filled(logs, topic_id: UUID):
    log = logs.create("topic", 0, topic_id, COMPACT)
    for number in range(40):
        stage(log, build_batch([Record(f"k{number % 4}".encode(), b"v" * 50)], now_ms=1_000_000))
        appending.commit(log)
    return log


def test_a_topic_made_anew_while_the_marker_is_on_its_way_is_recovered_from_its_beginning():
    files = MemoryFiles()
    logs = manager(files)
    of = Cleaning(files, Clock(), filled(logs, FORMER), COMPACT, Settings())
    of.background.held = True
    of.cleaner.look()
    of.background.release()  # the job has ended; what is held now is the marker
    assert not files.exists(f"/d1/topic-0/{marker.COMPACTED_TO}")
    logs.delete("topic", 0)
    filled(logs, LATTER)
    of.cleaner.stop()
    of.background.release()
    assert files.exists(f"/d1/topic-0/{marker.COMPACTED_TO}"), "it landed in the new topic's directory"

    files.content(f"/d1/topic-0/{0:020d}.log")[80] ^= 1  # a page that a power cut has lost
    recovered = manager(files).get("topic", 0)
    assert recovered.topic_id == LATTER
    assert recovered.end_offset == 0, "what the former topic's marker says of offsets is not said of these"
