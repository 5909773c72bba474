"""What the commits of `usage_raw` say: each record of `__usage` is appended once, whatever becomes of the job."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.metering.pipeline.positions import Position, TopicState, reaching_back
from controlplane.metering.pipeline.raw_commits import Commit, Gap, NewerTableError, commit_of, fresh

BEGINS = "2026-05-01T10:00:00Z"
EMPTY = Commit("first", "t1", 0, "", BEGINS)
ENDS = {0: 60, 1: 45, 2: 30}


def test_a_commit_is_read_as_it_was_written():
    commit = Commit("first", "t1", 17, "writer", BEGINS, {0: 4711, 1: 0}, (Gap(1, 40, 70),))
    assert Commit.from_json(commit.to_json()) == commit
    assert json.loads(commit.to_json())["next"] == {"0": 4711, "1": 0}


@pytest.mark.parametrize("text", [None, "", "{}", "[]", "not JSON", '{"sluice_lake": 1}'])
def test_commits_of_others_are_passed_over(text):
    assert Commit.from_json(text) is None


def test_a_table_of_a_newer_release_is_left_alone():
    newer = json.dumps(json.loads(EMPTY.to_json()) | {"sluice_usage_raw": 2})
    with pytest.raises(NewerTableError, match="newer release"):
        Commit.from_json(newer)


def test_only_what_lies_behind_is_new():
    known = Commit("first", "t1", 3, "w", BEGINS, {0: 10, 1: 20})
    assert fresh(known, "t1", {0: (5, 12), 1: (0, 20), 2: (7, 9)}) == {0: (10, 12), 2: (7, 9)}


def test_of_a_topic_that_was_made_again_everything_is():
    known = Commit("first", "t1", 3, "w", BEGINS, {0: 10, 1: 20})
    new = fresh(known, "t2", {0: (0, 4)})
    commit = commit_of(known, "t2", new, writer="w")
    assert (new, commit.following, commit.gaps, commit.sequence) == ({0: (0, 4)}, {0: 4}, (), 4)
    assert commit.held("t1") == {}


def test_what_was_gone_before_it_came_is_noted():
    known = Commit("first", "t1", 3, "w", BEGINS, {0: 10})
    commit = commit_of(known, "t1", {0: (15, 20), 1: (3, 5)}, writer="w")
    assert commit.gaps == (Gap(0, 10, 15),)
    assert commit.gaps[0].sentence == "usage_raw does not have records 10 to 14 of partition 0 of __usage"
    assert commit.following == {0: 20, 1: 5}


class Story:
    """A topic, the table, the database's positions, and a checkpoint that says how the batch under way is cut."""

    def __init__(self):
        self.rows, self.commit = [], EMPTY
        self.database = dict.fromkeys(ENDS, 0)
        self.checkpoint = dict.fromkeys(ENDS, 0)

    def batch(self, sizes, dies):
        """Lake first, then the database, then the checkpoint; it dies before one of them, or not."""
        spans = {
            partition: (begins, min(begins + sizes[partition], ENDS[partition]))
            for partition, begins in self.checkpoint.items()
        }
        new = fresh(self.commit, "t1", {partition: span for partition, span in spans.items() if span[0] < span[1]})
        if dies == "before the lake":
            return
        if new:
            self.rows += [(partition, offset) for partition, span in new.items() for offset in range(*span)]
            self.commit = Commit.from_json(commit_of(self.commit, "t1", new, writer="w").to_json())
        if dies == "before the database":
            return
        self.database = {partition: max(self.database[partition], end) for partition, (_, end) in spans.items()}
        if dies != "before the checkpoint":
            self.checkpoint = {partition: end for partition, (_, end) in spans.items()}

    def starts(self, *, loses_checkpoint):
        """As the job does: where the checkpoint says, unless it is gone or the lake is behind the database."""
        known = {partition: Position("t1", offset, ENDS[partition]) for partition, offset in self.database.items()}
        topic = TopicState("t1", dict.fromkeys(ENDS, 0), ENDS)
        found, reaches_back = reaching_back(known, topic, self.commit.held("t1"))
        if loses_checkpoint or reaches_back:
            self.checkpoint = {partition: position.next_offset for partition, position in found.items()}


DIES = ["", "", "", "before the lake", "before the database", "before the checkpoint"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("batch"), st.lists(st.integers(0, 12), min_size=3, max_size=3), st.sampled_from(DIES)),
        st.tuples(st.just("start"), st.booleans(), st.none()),
        st.tuples(st.just("database restored"), st.integers(0, 30), st.none()),
        st.tuples(st.just("lake restored"), st.integers(0, 30), st.none()),
    ),
    max_size=40,
)


@given(STEPS)
def test_each_record_is_there_once_whatever_dies_is_lost_or_is_restored(steps):
    story = Story()
    backups = []
    for what, value, dies in steps:
        if what == "batch":
            story.batch(dict(enumerate(value)), dies)
            if story.commit.following:
                backups.append((story.commit, list(story.rows)))
            if dies:
                story.starts(loses_checkpoint=False)
        elif what == "start":
            story.starts(loses_checkpoint=value)
        elif what == "database restored":
            story.database = {partition: max(0, offset - value) for partition, offset in story.database.items()}
            story.starts(loses_checkpoint=True)
        elif backups:
            story.commit, rows = backups[min(value, len(backups) - 1)]
            story.rows = list(rows)
            story.starts(loses_checkpoint=False)
    story.starts(loses_checkpoint=False)
    for _ in range(3):
        story.batch(dict.fromkeys(ENDS, 100), "")
    assert sorted(story.rows) == [(partition, offset) for partition, end in ENDS.items() for offset in range(end)]
    assert story.commit.gaps == ()


def test_a_lake_that_is_behind_is_read_again_as_far_as_the_topic_still_has_it():
    known = {0: Position("t1", 50, 60), 1: Position("t1", 40, 45), 2: Position("t1", 30, 30)}
    topic = TopicState("t1", {0: 0, 1: 25, 2: 0}, ENDS)
    found, reaches_back = reaching_back(known, topic, {0: 20, 1: 10, 2: 30})
    assert reaches_back
    assert {partition: position.next_offset for partition, position in found.items()} == {0: 20, 1: 25, 2: 30}


def test_a_lake_that_is_ahead_or_new_changes_nothing():
    known = {0: Position("t1", 50, 60), 1: Position("t1", 40, 45)}
    topic = TopicState("t1", {0: 0, 1: 0}, ENDS)
    for held in ({0: 60, 1: 45}, {}):
        assert reaching_back(known, topic, held) == (known, False)
    found, _ = reaching_back(known, topic, {0: 60})
    assert found[1].next_offset == 0, "of a partition that it does not know it has nothing"
    other = {0: Position("before", 50, 60)}
    assert reaching_back(other, topic, {0: 3}) == (other, False), "the topic was made again: that is another matter"
