"""What an earlier boot of a broker has counted is read a part at a time, and its file goes when all of it is told."""

from __future__ import annotations

from dataplane.metering.counters import PRODUCED, Counters, CounterSnapshot
from dataplane.metering.previous_boots import PreviousBoots, counters_path
from tests.support.memory_files import MemoryFiles

TOPICS = 3_000


def former_boot(counting) -> MemoryFiles:
    """Its file: of these topics, by number, each has counted its number and one."""
    files = MemoryFiles()
    files.make_directory("/data")
    counters = Counters(files, counters_path("/data", "abc"), boot=0xABC, broker=7, slots=TOPICS + 1)
    for number in range(TOPICS):
        at = counters.claim(f"aaaabbbb.t{number}", 1)
        if number in counting:
            counters.words[at + PRODUCED] = number + 1
    return files


def test_of_very_many_topics_without_usage_few_are_looked_at_in_one_turn(monkeypatch):
    files = former_boot({0, TOPICS - 1})
    looked_at = []
    all_rows = CounterSnapshot.rows

    def rows(snapshot):
        for row in all_rows(snapshot):
            looked_at.append(row)
            yield row

    monkeypatch.setattr(CounterSnapshot, "rows", rows)
    boots = PreviousBoots(files, ["/data"], print)
    found, most = [], 0
    while boots.has_more:
        before = len(looked_at)
        found += boots.next(64)
        most = max(most, len(looked_at) - before)
    assert {record.topic: record.produced_bytes for record in found} == {"t0": 1, f"t{TOPICS - 1}": TOPICS}
    assert most <= 256


def test_where_there_is_no_room_nothing_is_handed_out():
    boots = PreviousBoots(former_boot({0}), ["/data"], print)
    assert (boots.next(0), boots.next(-3), boots.has_more) == ([], [], True)


def test_its_file_stays_until_all_of_it_is_told():
    files = former_boot(set(range(0, TOPICS, 700)))
    boots = PreviousBoots(files, ["/data"], print)
    path, told = counters_path("/data", "abc"), []
    while boots.has_more:
        boots.acknowledged(told.append)
        assert files.exists(path)
        boots.next(2)
    assert boots.owes
    boots.acknowledged(told.append)
    assert (files.exists(path), told, boots.owes) == (False, [0xABC], False)
