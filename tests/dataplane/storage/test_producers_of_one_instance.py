"""All logs of an instance have one budget for what they remember of idempotent producers."""

from __future__ import annotations

from uuid import UUID

import pytest

from dataplane.config import BrokerConfig, Settings
from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import read_header
from dataplane.records.control import Marker, build_marker
from dataplane.storage import producer_budget
from dataplane.storage.checkpoints.producers import PRODUCER_BYTES, Duplicate
from dataplane.storage.log import Log, appending, producing
from dataplane.storage.manager import LogManager
from tests.dataplane.storage.support import append, batch_of, stage
from tests.support.memory_files import ImmediateBackground, MemoryFiles

MOST = 100
ONE, OTHER = "aaaaaaaa", "bbbbbbbb"


class Clock:
    def now_ms(self) -> int:
        return 1_000_000

    def monotonic(self) -> float:
        return 0.0


def manager(files: MemoryFiles, settings: Settings | None = None) -> LogManager:
    settings = settings or Settings(producer_state_bytes_per_instance=MOST * PRODUCER_BYTES)
    config = BrokerConfig(id=1, data_dirs=("/d1",), internal=("127.0.0.1", 1), settings=settings)
    made = LogManager(files, Clock(), ImmediateBackground(), config)
    made.open_all()
    return made


@pytest.fixture
def logs() -> LogManager:
    return manager(MemoryFiles())


def log_of(logs: LogManager, topic: str, partition: int = 0) -> Log:
    return logs.create(topic, partition, UUID(int=partition + 1))


def write(log: Log, *producers: int, sequence: int = 0) -> None:
    for producer in producers:
        append(log, "v", producer_id=producer, producer_epoch=0, base_sequence=sequence)


def verdict(log: Log, producer: int, sequence: int = 0) -> object:
    return producing.producers_of(log).check(
        read_header(batch_of("v", producer_id=producer, producer_epoch=0, base_sequence=sequence))
    )


def size_bytes(*logs: Log) -> int:
    return sum(producing.producers_of(log).size_bytes for log in logs)


def test_the_log_that_remembers_most_forgets_those_who_have_not_written_for_longest(logs):
    busy, quiet = log_of(logs, f"{ONE}.busy"), log_of(logs, f"{ONE}.quiet")
    write(quiet, *range(20))
    write(busy, *range(1_000, 1_060))
    write(busy, 1_000, sequence=1)  # it is the newest now
    write(busy, *range(2_000, 2_500))
    assert size_bytes(busy, quiet) <= MOST * PRODUCER_BYTES
    assert len(producing.producers_of(quiet)) == 20
    assert isinstance(verdict(busy, 2_499), Duplicate)
    assert 1_001 not in producing.producers_of(busy).last_batches()
    forgotten = logs.producer_budgets.forgotten()
    assert forgotten == {ONE: 20 + 560 - len(producing.producers_of(quiet)) - len(producing.producers_of(busy))}


def test_a_retry_of_one_that_was_forgotten_is_recognised(logs):
    log = log_of(logs, f"{ONE}.t")
    write(log, *range(MOST + 5))
    assert 0 not in producing.producers_of(log).last_batches()
    assert verdict(log, 0) == ErrorCode.DUPLICATE_SEQUENCE_NUMBER


def looks_of(monkeypatch) -> list[int]:
    """A number for each time that somebody adds up what an instance's logs remember."""
    looks, look = [], producer_budget._Held.look
    monkeypatch.setattr(producer_budget._Held, "look", lambda self: looks.append(1) or look(self))
    return looks


@pytest.fixture
def forty() -> tuple[LogManager, list[Log]]:
    """Logs that share a budget of two thousand producers."""
    settings = Settings(producer_state_bytes_per_instance=2_000 * PRODUCER_BYTES)
    logs = manager(MemoryFiles(), settings)
    return logs, [log_of(logs, f"{ONE}.t", partition) for partition in range(40)]


def test_each_newcomer_waits_for_a_part_of_one_log(forty, monkeypatch):
    """All of a fiftieth of the budget at once took milliseconds, in the turn of the loop in which a batch was staged."""
    logs, many = forty
    looks, forgotten, before = looks_of(monkeypatch), [], 0
    for producer in range(60):
        for log in many:
            write(log, producer)
            now = logs.producer_budgets.forgotten().get(ONE, 0)
            forgotten.append(now - before)
            before = now
    assert max(forgotten) == 5, "a tenth of a log's fifty"
    assert sum(forgotten) > 400
    assert len(looks) <= 1 + 400 // 40, "once for a fiftieth of the budget"
    assert size_bytes(*many) <= 2_000 * PRODUCER_BYTES


def test_a_log_that_is_deleted_while_room_is_made_is_passed_over(forty, monkeypatch):
    logs, many = forty
    for log in many:
        write(log, *range(50))
    assert logs.producer_budgets.forgotten() == {ONE: 5}, "the first has made room"
    looks = looks_of(monkeypatch)
    logs.delete(f"{ONE}.t", 1)
    write(many[2], *range(100, 110))
    assert not looks
    assert logs.producer_budgets.forgotten() == {ONE: 5}, "the second is gone: that is room enough"
    assert len(producing.producers_of(many[2])) == 60


def test_where_open_transactions_fill_the_budget_not_every_newcomer_looks_for_room(logs, monkeypatch):
    looks = looks_of(monkeypatch)
    log = log_of(logs, f"{ONE}.t")
    for producer in range(2 * MOST):
        append(log, "v", producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)
    assert 10 < len(looks) <= MOST // 2 + 1, "each time another fiftieth has come"
    assert len(producing.producers_of(log)) == 2 * MOST
    for producer in range(2 * MOST):
        marker = build_marker(Marker.COMMIT, producer_id=producer, producer_epoch=0, coordinator_epoch=0, now_ms=0)
        stage(log, marker, 0)
    appending.commit(log)
    write(log, *range(3 * MOST, 3 * MOST + 5))
    assert size_bytes(log) <= MOST * PRODUCER_BYTES, "they may go when their transactions have ended"
    del looks[:]
    write(log, *range(4 * MOST, 4 * MOST + 5))
    assert len(looks) <= 3


def test_many_logs_with_few_producers_each_are_bounded_too(logs):
    many = [log_of(logs, f"{ONE}.t", partition) for partition in range(60)]
    for producer in range(20):
        for log in many:
            write(log, producer)
    assert size_bytes(*many) <= MOST * PRODUCER_BYTES
    assert max(len(producing.producers_of(log)) for log in many) <= 3


def test_one_instance_forgets_nothing_for_another_and_the_cluster_has_no_budget(logs):
    other, own, one = log_of(logs, f"{OTHER}.t"), log_of(logs, "__usage"), log_of(logs, f"{ONE}.t")
    write(other, *range(50))
    write(own, *range(2 * MOST))
    write(one, *range(5 * MOST))
    assert (len(producing.producers_of(other)), len(producing.producers_of(own))) == (50, 2 * MOST)
    assert list(logs.producer_budgets.forgotten()) == [ONE]


def test_what_expired_or_went_with_its_log_makes_room_for_others(logs):
    first, second = log_of(logs, f"{ONE}.first"), log_of(logs, f"{ONE}.second")
    write(first, *range(80))
    logs.delete(f"{ONE}.first", 0)
    write(second, *range(60))
    producing.expire_producers(second, 0, 1)
    producing.expire_producers(second, 100, 1)
    assert len(producing.producers_of(second)) == 0
    write(second, *range(1_000, 1_080))
    assert len(producing.producers_of(second)) == 80
    assert logs.producer_budgets.forgotten() == {}


def test_what_is_read_after_a_restart_counts():
    files = MemoryFiles()
    logs = manager(files)
    before = [log_of(logs, f"{ONE}.t", partition) for partition in range(3)]
    for log in before:
        write(log, *range(30))
    logs.close()
    again = manager(files)
    after = [again.get(f"{ONE}.t", partition) for partition in range(3)]
    for log in after:
        write(log, *range(1_000, 1_030))
    assert size_bytes(*after) <= MOST * PRODUCER_BYTES
    assert again.producer_budgets.forgotten()[ONE] >= 80


def test_of_an_instance_that_is_gone_nothing_is_kept(logs):
    write(log_of(logs, f"{ONE}.t"), *range(2 * MOST))
    logs.producer_budgets.drop(ONE)
    assert logs.producer_budgets.forgotten() == {}
