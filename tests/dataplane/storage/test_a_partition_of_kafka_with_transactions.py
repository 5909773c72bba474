"""A partition that Kafka 3.9.2 wrote (tests/conformance/golden_transactions.py): we read it, and make the same of its log."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataplane.records.header import split_batches
from dataplane.storage.checkpoints import snapshots
from dataplane.storage.checkpoints.producers import Producers
from dataplane.storage.log import aborting, producing
from tests.dataplane.storage.support import DIRECTORY, new_files, open_log

GOLDEN = Path(__file__).parents[2] / "golden" / "records" / "transactions.txt"
FILES = {name: bytes.fromhex(data) for name, data in (line.split() for line in GOLDEN.read_text().splitlines())}
LOG, ABORTED = (f"{0:020d}.{kind}" for kind in ("log", "txnindex"))
(SNAPSHOT,) = (name for name in FILES if name.endswith(".snapshot"))


def opened(*names, clean):
    files = new_files()
    for name in names:
        files.write_file(f"{DIRECTORY}/{name}", FILES[name])
    return open_log(files, clean=clean)


def open_since(log):
    """Where the transaction begins that was never ended: at the last batch."""
    return max(header.base_offset for header, _ in split_batches(FILES[LOG])), log.end_offset


@pytest.mark.parametrize(("names", "clean"), [((LOG, ABORTED, SNAPSHOT), True), ((LOG,), False)])
def test_we_know_what_kafka_knew(names, clean):
    log = opened(*names, clean=clean)
    producing.learn_transactions(log)
    first, end = open_since(log)
    assert log.transactions.stable_end(end, 0) == first == end - 1
    found = aborting.aborted_between(log, 0, end)
    assert len(found) == 2
    assert log.segments[0].aborted().pack() == FILES[ABORTED]


def test_the_snapshot_is_what_we_make_of_the_log():
    kafkas = {state.producer_id: state for state in snapshots.unpack(FILES[SNAPSHOT]).producers}
    log = opened(LOG, clean=False)
    ours = {state.producer_id: state for state in producing.producers_of(log).states(0)}
    assert ours.keys() == kafkas.keys()
    for producer_id, kafka in kafkas.items():
        our = ours[producer_id]
        assert (our.epoch, our.coordinator_epoch, our.first_offset) == (
            kafka.epoch,
            kafka.coordinator_epoch,
            kafka.first_offset,
        )
        assert our.batches[-1:] == kafka.batches


def test_kafka_would_read_our_snapshot_as_its_own():
    producers = Producers()
    producers.restore(*snapshots.unpack(FILES[SNAPSHOT]))
    packed = snapshots.pack(producers.states(0))
    assert packed[6 : len(FILES[SNAPSHOT])] == FILES[SNAPSHOT][6:]
