"""ListOffsets: version 0's list of offsets, and a time that is looked for in a large packed batch between other requests."""

import pytest

from dataplane.handlers.records.log_offsets import offsets_before
from dataplane.records.batch import Record, build_batch
from dataplane.records.compression import GZIP
from dataplane.storage.log import LogConfig, appending, removing
from tests.dataplane.handlers.asking import Tenant
from tests.dataplane.storage.support import new_files, open_log, stage
from tests.simulation.cluster import SimulatedCluster

NOW = 1_000


@pytest.fixture
def log():
    """Segments that begin at 0, 2 and 4, whose youngest records are of 20, 40 and 50; the end is 5."""
    made = open_log(new_files(), config=LogConfig(segment_bytes=1500))
    for time in (10, 20, 30, 40, 50):
        stage(made, build_batch([Record(None, bytes(600), (), time)], now_ms=0), 0)
        appending.commit(made)
    assert [segment.base_offset for segment in made.segments] == [0, 2, 4]
    return made


@pytest.mark.parametrize(
    ("timestamp", "most", "offsets"),
    [
        (-1, 10, (5, 4, 2, 0)),
        (-1, 2, (5, 4)),
        (-1, 0, ()),
        (-2, 10, (0,)),
        (NOW, 10, (5, 4, 2, 0)),
        (NOW - 1, 10, (4, 2, 0)),
        (49, 10, (2, 0)),
        (40, 1, (2,)),
        (19, 10, ()),
    ],
)
def test_segments_newest_first(log, timestamp, most, offsets):
    assert offsets_before(log, timestamp, most, 5, NOW) == offsets


def test_what_is_not_committed_is_not_named(log):
    assert offsets_before(log, -1, 10, 3, NOW) == (3, 2, 0)
    assert offsets_before(log, -1, 1, 3, NOW) == (3,)


def test_the_first_segment_begins_where_the_log_does(log):
    removing.set_start_offset(log, 1)
    assert offsets_before(log, -1, 10, 5, NOW) == (5, 4, 2, 1)
    assert offsets_before(log, -2, 10, 5, NOW) == (1,)


def test_an_empty_log_has_one_place():
    log = open_log(new_files())
    assert offsets_before(log, -1, 10, 0, NOW) == (0,)
    assert offsets_before(log, -2, 10, 0, NOW) == (0,)


def test_a_time_inside_a_large_packed_batch_is_exact():
    cluster = SimulatedCluster(seed=8)
    cluster.until(cluster.up)
    cluster.create_topic("orders", 1)
    tenant = Tenant(cluster)
    rows = [Record(b"k", b"v" * 20, (), 1_000_000 + 10 * n) for n in range(20_000)]
    assert tenant.produce(9, build_batch(rows, now_ms=1, codec=GZIP)).error_code == 0
    for version in range(1, 8):
        assert tenant.offsets(version, 1_000_000 + 10 * 15_000 - 3).offset == 15_000
    latest = tenant.offsets(7, -3)
    assert (latest.offset, latest.timestamp, latest.leader_epoch) == (19_999, 1_000_000 + 199_990, 0)
    assert tenant.offsets(7, 2_000_000).offset == -1
    assert tenant.offsets(0, -1, most=5).old_style_offsets == (20_000, 0)
