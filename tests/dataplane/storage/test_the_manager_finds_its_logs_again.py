"""Start, stop, crash, create, delete: what a broker's data directory holds."""

from uuid import UUID

import pytest

from dataplane.config import BrokerConfig, Settings
from dataplane.storage.checkpoints.formats import MetadataError
from dataplane.storage.log import removing
from dataplane.storage.manager import LogManager
from tests.dataplane.storage.support import append, records_in
from tests.support.memory_files import ImmediateBackground, MemoryFiles

ID = UUID("12345678-1234-5678-1234-567812345678")


class Clock:
    def now_ms(self) -> int:
        return 1_000_000

    def monotonic(self) -> float:
        return 0.0


def manager(files, background=None, *, broker: int = 1, homes: tuple[str, ...] = ("/d1",), **settings) -> LogManager:
    config = BrokerConfig(id=broker, data_dirs=homes, internal=("127.0.0.1", 1), settings=Settings(**settings))
    found = LogManager(files, Clock(), background or ImmediateBackground(), config)
    found.open_all()
    return found


def test_logs_come_back_with_their_topic_ids():
    files = MemoryFiles()
    first = manager(files)
    append(first.create("a-b.c", 12, ID), "hello")
    first.close()
    again = manager(files)
    log = again.get("a-b.c", 12)
    assert (log.topic, log.partition, log.topic_id) == ("a-b.c", 12, ID)
    assert records_in(log) == [(0, b"hello")]
    assert again.get("a-b.c", 1) is None
    assert files.read_file("/d1/a-b.c-12/partition.metadata") == b"version: 0\ntopic_id: EjRWeBI0VngSNFZ4EjRWeA\n"


def test_an_orderly_stop_needs_no_recovery_and_a_crash_does():
    files = MemoryFiles()
    first = manager(files)
    append(first.create("t", 0, ID), "on disk")
    assert not files.exists("/d1/.kafka_cleanshutdown")
    first.close()
    assert files.exists("/d1/.kafka_cleanshutdown")
    assert files.read_file("/d1/recovery-point-offset-checkpoint") == b"0\n1\nt 0 1\n"
    second = manager(files)
    assert not files.exists("/d1/.kafka_cleanshutdown")
    append(second.get("t", 0), "only in memory")
    files.crash()
    log = manager(files).get("t", 0)
    assert records_in(log) == [(0, b"on disk")]


def test_a_log_that_could_not_be_closed_makes_the_stop_unclean():
    files = MemoryFiles()
    first = manager(files)
    append(first.create("t", 0, ID), "a")
    other = first.create("u", 0, ID)
    append(other, "b")

    def fault(operation, path):
        if operation == "sync_below" or (operation == "sync" and "/t-0/" in path):
            raise OSError(5, "the disk is gone", path)

    files.fault = fault
    first.close()
    files.fault = None
    assert not files.exists("/d1/.kafka_cleanshutdown")
    files.crash()
    again = manager(files)
    assert again.get("t", 0).end_offset == 0
    assert records_in(again.get("u", 0)) == [(0, b"b")]


def test_epochs_whose_new_file_may_not_have_its_name_on_disk_make_the_stop_unclean():
    files = MemoryFiles()
    first = manager(files)
    log = first.create("t", 0, ID)
    log.founding.settle()
    append(log, "a", epoch=3)
    renamed = []

    def fault(operation, path):
        if operation == "rename":
            renamed.append(path)
        if operation == "sync_below" and renamed:
            raise OSError(5, "the disk is gone", path)

    files.fault = fault
    first.close()
    files.fault = None
    assert [path.rpartition("/")[2] for path in renamed] == ["leader-epoch-checkpoint.closing.tmp"]
    assert not files.exists("/d1/.kafka_cleanshutdown")
    again = manager(files).get("t", 0)
    assert (records_in(again), again.epochs.entries()) == ([(0, b"a")], [(3, 0)])


def test_high_watermarks_are_remembered():
    files = MemoryFiles()
    first = manager(files)
    append(first.create("t", 0, ID), "a", "b")
    assert first.checkpoints.write({("t", 0): 2, ("gone", 3): 9}).done
    assert files.read_file("/d1/replication-offset-checkpoint") == b"0\n1\nt 0 2\n"
    again = manager(files)
    assert again.checkpoints.high_watermark("t", 0) == 2
    assert again.checkpoints.high_watermark("gone", 3) == 0


def test_only_one_checkpoint_is_written_at_a_time():
    files, background = MemoryFiles(), ImmediateBackground()
    found = manager(files, background)
    found.create("t", 0, ID)
    background.held = True
    first = found.checkpoints.write({("t", 0): 1})
    assert found.checkpoints.write({("t", 0): 2}).done
    assert not first.done
    background.release()
    assert first.done
    background.held = False
    found.checkpoints.write({})
    assert files.read_file("/d1/replication-offset-checkpoint") == b"0\n1\nt 0 1\n"


def test_a_start_within_a_segment_is_remembered():
    files = MemoryFiles()
    first = manager(files)
    log = first.create("t", 0, ID)
    append(log, "a", "b", "c")
    removing.set_start_offset(log, 2)
    first.close()
    assert manager(files).get("t", 0).start_offset == 2


def test_a_deleted_log_is_gone_at_once_and_its_space_soon():
    files, background = MemoryFiles(), ImmediateBackground()
    found = manager(files, background)
    append(found.create("t", 0, ID), "a")
    background.held = True
    found.delete("t", 0)
    found.delete("t", 0)
    assert found.get("t", 0) is None
    assert files.list("/d1") == ["meta.properties", "t-0.0.delete"]
    fresh = found.create("t", 0, UUID(int=2))
    assert (fresh.end_offset, fresh.topic_id) == (0, UUID(int=2))
    found.delete("t", 0)
    assert files.list("/d1") == ["meta.properties", "t-0.0.delete", "t-0.1.delete"]
    manager(files)  # a restart finishes it
    assert files.list("/d1") == ["meta.properties"]
    background.release()


def test_the_name_of_a_deleted_log_is_remembered_until_no_checkpoint_can_speak_of_it():
    files, background = MemoryFiles(), ImmediateBackground()
    found = manager(files, background)
    append(found.create("t", 0, ID), "a")
    background.held = True
    found.checkpoints.write({})  # on its way, with a row of it
    found.delete("t", 0)
    background.release()
    assert found.checkpoints.speak_of(("t", 0))
    found.checkpoints.write({})
    assert found.checkpoints.speak_of(("t", 0)), "the next one is on its way"
    background.release()
    assert not found.checkpoints.speak_of(("t", 0))
    found.create("other", 0, ID)
    found.checkpoints.write({})
    background.release()
    again = manager(files)
    assert again.checkpoints.speak_of(("other", 0))
    again.checkpoints.write({})
    assert not again.checkpoints.speak_of(("other", 0))


def test_creating_twice_gives_the_same_log():
    found = manager(MemoryFiles())
    log = found.create("t", 0, ID)
    append(log, "a")
    assert found.create("t", 0, ID) is log
    assert found.logs() == [log]


def test_what_a_crash_left_of_a_creation_is_ignored():
    files = MemoryFiles()
    files.make_directory("/d1/t-0")
    found = manager(files)
    assert found.get("t", 0) is None
    assert found.create("t", 0, ID).end_offset == 0


def test_new_logs_go_to_the_directory_with_fewest():
    files = MemoryFiles()
    found = manager(files, homes=("/d1", "/d2"))
    homes = [found.create("t", n, ID).directory.split("/")[1] for n in range(4)]
    assert homes == ["d1", "d2", "d1", "d2"]
    found.close()
    assert len(manager(files, homes=("/d1", "/d2")).logs()) == 4


def test_another_brokers_directory_is_refused():
    files = MemoryFiles()
    manager(files, broker=1)
    with pytest.raises(MetadataError, match="belongs to broker 1, not 2"):
        manager(files, broker=2)


def test_damaged_topic_metadata_stops_the_start():
    files = MemoryFiles()
    first = manager(files)
    first.create("t", 0, ID)
    files.write_file("/d1/t-0/partition.metadata", b"version: 0\ntopic_id: short\n")
    with pytest.raises(MetadataError):
        manager(files)


def test_retention_runs_over_all_logs_up_to_their_limits():
    found = manager(MemoryFiles(), log_segment_bytes=100, log_retention_ms=1_000)
    for topic in ("a", "b"):
        log = found.create(topic, 0, ID)
        for n in range(4):
            append(log, str(n) * 30, now_ms=n)
    freed = found.apply_retention(lambda log: 4 if log.topic == "a" else 0)
    assert freed > 0
    assert (found.get("a", 0).start_offset, found.get("b", 0).start_offset) == (4, 0)
