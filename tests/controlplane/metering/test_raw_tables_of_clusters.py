"""Jobs of several clusters append to one `usage_raw`: each goes on from its own commits, and no other's are in its way.

Delta Lake is a list of commits here, with what a transaction's application and version mean to it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from controlplane.clusters.models import PhysicalCluster
from controlplane.metering.models import Progress, Statement
from controlplane.metering.pipeline import raw_table
from controlplane.metering.pipeline.jobs import reconcile
from controlplane.metering.pipeline.raw_commits import EVER
from controlplane.metering.pipeline.raw_table import OvertakenError, RawTable

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 5, 1, 9, 30, tzinfo=UTC)
TOPICS = {"default": "topic-d", "east": "topic-e"}


class Lake:
    """The log of a table: `userMetadata` of each commit, and the last version of each application."""

    def __init__(self):
        self.commits, self.versions, self.rows = [], {}, []

    def write(self, rows, options):
        application, version = options.get("txnAppId"), int(options.get("txnVersion", 0))
        if application is not None and self.versions.get(application, -1) >= version:
            return  # passed over in silence
        self.versions[application] = version
        self.commits.append(options.get("userMetadata"))
        self.rows.append(rows)

    def newest(self, most=None):
        return self.commits[::-1][:most]


@pytest.fixture
def lake(monkeypatch):
    made = Lake()
    monkeypatch.setattr(raw_table.delta, "is_table", lambda _spark, _uri: bool(made.commits))
    monkeypatch.setattr(raw_table.delta, "commits", lambda _spark, _uri, newest=None: made.newest(newest))
    monkeypatch.setattr(raw_table.transforms, "raw_rows", lambda rows, topic_id, _now: (topic_id, rows))
    monkeypatch.setattr(raw_table.transforms, "known_rows", lambda _spark, portion, _now: ("known", portion))
    monkeypatch.setattr(raw_table, "Database", lambda _environment: FromDjango())
    monkeypatch.setattr(RawTable, "_write", lambda _table, rows, options: made.write(rows, options))
    monkeypatch.setattr(RawTable, "_of_rows", lambda _table, _topic_id: None)
    return made


class FromDjango:
    """What a table asks of the database when it begins."""

    def read(self, statement, values=()):
        if "metering_progress" in statement:
            cluster, topic_id = values
            rows = Progress.objects.filter(cluster=cluster, topic_id=topic_id).values_list("partition", "next_offset")
        elif "metering_statement" in statement:
            rows = [(Statement.objects.filter(cluster=values[0]).count(),)]
        else:
            rows = [("ins-1", "b", "t", "2026-05-01T08:00:00Z", 1, 5, 5, 5)]
        return iter(list(rows))

    def close(self):
        """Nothing to give up."""


def begun(cluster, at=0):
    """The job of a cluster has looked at its topic."""
    for partition in (0, 1):
        Progress.objects.create(
            cluster=cluster,
            partition=partition,
            topic_id=TOPICS[cluster],
            next_offset=at,
            end_offset=90,
            looked_at_ms=0,
        )


def job(cluster):
    """One start of it."""
    return RawTable(None, "s3a://lake", None, cluster)


def taken(table, cluster, first, end, partition=0):
    rows = SimpleNamespace(where=lambda said: said)
    return table.append(rows, TOPICS[cluster], {partition: (first, end)}, NOW)


@pytest.fixture
def both(lake):
    for cluster in TOPICS:
        begun(cluster)
    return {cluster: job(cluster) for cluster in TOPICS}


def test_each_knows_what_its_own_cluster_has_whoever_wrote_last(both):
    assert taken(both["default"], "default", 0, 10) == 10
    assert taken(both["east"], "east", 0, 7) == 7
    assert taken(both["default"], "default", 10, 15) == 5
    assert job("default").held(TOPICS["default"]) == {0: 15, 1: 0}
    assert job("east").held(TOPICS["east"]) == {0: 7, 1: 0}


def test_a_batch_that_comes_again_is_there_once_although_the_other_one_wrote_in_between(both, lake):
    taken(both["default"], "default", 0, 10)
    taken(both["east"], "east", 0, 7)
    written = len(lake.commits)
    again = job("default")  # killed between lake and database
    assert taken(again, "default", 0, 10) == 0
    assert len(lake.commits) == written


def test_nobody_is_overtaken_by_the_other_ones_number(both):
    for at in range(0, 50, 5):
        for cluster, table in both.items():
            assert taken(table, cluster, at, at + 5) == 5


def test_of_two_jobs_of_one_cluster_the_second_is_overtaken_still(both):
    other = job("default")
    other.held(TOPICS["default"])
    taken(both["default"], "default", 0, 10)
    other._is_known = True  # it looked before the first one wrote
    with pytest.raises(OvertakenError):
        taken(other, "default", 0, 10)


def test_a_cluster_of_which_nothing_was_read_is_there_from_its_first_record_on(lake):
    begun("default", at=40)
    taken(job("default"), "default", 40, 50)
    assert [rows[0] for rows in lake.rows] == ["known", TOPICS["default"]]
    begun("east")
    taken(job("east"), "east", 0, 5)
    assert job("default").begins(TOPICS["default"]) == "2026-05-01T10:00:00Z"
    assert job("east").begins(TOPICS["east"]) == EVER
    assert [rows[0] for rows in lake.rows] == ["known", TOPICS["default"], TOPICS["east"]]


def test_hours_are_compared_from_where_every_cluster_in_use_has_them(lake):
    for cluster in TOPICS:
        begun(cluster, at=40)
    PhysicalCluster.objects.create(name="west", zookeeper_hosts="z:2181")
    taken(job("default"), "default", 40, 50)
    lake.commits[-1] = json.dumps(json.loads(lake.commits[-1]) | {"begins": "2026-04-01T00:00:00Z"})
    settings = SimpleNamespace(lake="s3a://lake", environment=None)
    known = SimpleNamespace(topics=lambda: sorted(TOPICS.items()))
    assert reconcile._begins(None, settings, known) == "2026-04-01T00:00:00Z", "of the other one there is nothing yet"
    taken(job("east"), "east", 40, 50)
    assert reconcile._begins(None, settings, known) == "2026-05-01T10:00:00Z"
