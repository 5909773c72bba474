"""A round of compaction, stopped after every single call to the disk and in the middle of every write: what is left there
after a kill, and after power cuts that lose contents and names that were not synced, opens to the same table."""

from __future__ import annotations

from random import Random

import pytest

from dataplane.records.batch import Record, build_batch
from dataplane.storage.log import appending, flushing
from tests.dataplane.storage.cleaning import RETENTION_MS, Clock, cleaning, table
from tests.dataplane.storage.support import DIRECTORY, stage
from tests.support.faulty_files import NAMES_ONLY, STRICT, FaultyFiles

CUTS = (STRICT, NAMES_ONLY, "some")


def history(seed: int):
    """A log that was compacted once, was written to since, and has tombstones of which some may go in the next round."""
    random = Random(seed)
    files = FaultyFiles()
    files.make_directory(DIRECTORY)
    for path in ("/data", "/"):
        files.sync_directory(path)
    of = cleaning(files, Clock())
    for part in range(2):
        for _ in range(40):
            records = [
                Record(b"k%d" % random.randrange(12), None if random.random() < 0.3 else random.randbytes(20))
                for _ in range(random.randint(1, 3))
            ]
            stage(of.log, build_batch(records, now_ms=of.clock.ms))
            appending.commit(of.log)
        flushing.flush(of.log)
        if not part:
            of.run()
            of.clock.ms += 2 * RETENTION_MS
    files.sync_directory(DIRECTORY)
    return of


def values(log) -> dict[bytes | None, bytes | None]:
    """Keys that have a value, and the last one."""
    return {key: value for key, value in {key: value for _, key, value in table(log)}.items() if value is not None}


@pytest.mark.parametrize("seed", range(4))
def test_the_table_is_the_same(seed):
    of = history(seed)
    expected, end = values(of.log), of.log.end_offset
    written = {offset: (key, value) for offset, key, value in table(of.log)}
    disks: list[tuple[str, FaultyFiles]] = []
    saved = Random(seed).choice((0, of.log.recovery_point))

    def stopped(call: str) -> None:
        disks.append((f"kill after {call}", of.files.after_kill()))
        for how in CUTS:
            cut = Random(len(disks)) if how == "some" else how
            disks.append((f"power cut ({how}) after {call}", of.files.after_power_cut(cut)))

    of.files.observer = stopped
    of.run()
    of.files.observer = None
    assert of.cleaner.rounds == 2
    assert len(table(of.log)) < len(written)
    assert len(disks) > 400
    for name, disk in disks:
        again = cleaning(disk, of.clock, recovery_point=saved)
        assert (again.log.end_offset, again.log.bytes_cut) == (end, 0), name
        assert values(again.log) == expected, name
        assert all(written[offset] == (key, value) for offset, key, value in table(again.log)), name
        again.run()
        assert values(again.log) == expected, f"{name}, after another round"
