"""A campaign goes on where it was ended, keeps what it found, and says its result with the number of trials."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest

from tests.chaos import campaign
from tests.chaos.calibration import AIMED
from tests.chaos.campaign import Campaign
from tests.chaos.faults import KINDS, OF_THREE_KEEPERS, SkippedError
from tests.chaos.record import CampaignPlan
from tests.chaos.report import summary, table
from tests.simulation.bugs import BUGS
from tests.support.shard import WHOLE

PLAN = CampaignPlan(seed=7, seconds=1.0, kinds=("leader", "pause"))


@pytest.fixture
def made(monkeypatch):
    """Rounds that only note that they were made; `made.wrong` are those that find something."""
    noted = SimpleNamespace(numbers=[], wrong=set(), skipped=set(), clusters=[], not_up=0)

    class NoRound:
        def __init__(self, *_: object) -> None:
            pass

        def whole(self, outcome, _seconds):
            if outcome.kind in noted.skipped:
                raise SkippedError("not here")
            noted.numbers.append(outcome.number)
            outcome.faults, outcome.acknowledged = 2, 100
            if outcome.number in noted.wrong:
                outcome.findings.add("lost", "p1:5 is not there")

    @contextlib.contextmanager
    def no_cluster(_plan, *, three_keepers):
        if noted.not_up:
            noted.not_up -= 1
            raise AssertionError("a busy machine")
        noted.clusters.append(three_keepers)
        yield SimpleNamespace(folder=noted.folder), [], None

    monkeypatch.setattr(campaign, "Round", NoRound)
    monkeypatch.setattr(campaign, "_running", no_cluster)
    monkeypatch.setattr(campaign, "Faults", lambda *_: SimpleNamespace(end=lambda: None))
    return noted


@pytest.fixture
def run(made, tmp_path):
    made.folder = tmp_path / "cluster"
    made.folder.mkdir()

    def run(rounds, plan=PLAN, told=None, part=WHOLE):
        made.numbers.clear()
        campaign = Campaign(plan, lambda _: None, plan.folder(tmp_path / "kept"), part)
        campaign.run(rounds, lambda figures: None if told is None else told.append(figures))
        return campaign.outcomes(rounds)

    return run


def test_what_was_done_is_not_done_again_and_more_rounds_continue_it(run, made):
    assert len(run(3)) == 3
    assert [outcome.number for outcome in run(5)] == [1, 2, 3, 4, 5]
    assert made.numbers == [4, 5]


def test_parts_do_every_round_once_and_each_tells_of_all(run, made):
    told = []
    run(6, part=(1, 2))
    first = list(made.numbers)
    assert first
    run(6, part=(2, 2), told=told)
    assert sorted(first + made.numbers) == [1, 2, 3, 4, 5, 6]
    assert told[-1]["together"]["rounds"] == 6


def test_what_parts_have_left_is_done_in_one(run, made):
    done = len(run(8, part=(1, 2)))
    assert len(run(8)) == 8
    assert len(made.numbers) == 8 - done


def test_one_part_has_both_rounds_of_a_turn_on_three_zookeepers(run, made):
    plan = CampaignPlan(seed=7, seconds=1.0, kinds=KINDS)
    run(2 * len(KINDS), plan, part=(1, 2))
    run(2 * len(KINDS), plan, part=(2, 2))
    assert made.clusters.count(True) == 2  # one a turn
    assert len(OF_THREE_KEEPERS) == 2


def test_a_cluster_that_does_not_come_up_is_tried_again(run, made):
    made.not_up = 2
    assert len(run(3)) == 3
    made.not_up = 100
    with pytest.raises(AssertionError, match="a busy machine"):
        run(4)


def test_another_plan_begins_anew(run, made):
    run(3)
    run(3, CampaignPlan(seed=7, seconds=2.0, kinds=PLAN.kinds))
    assert made.numbers == [1, 2, 3]


def test_findings_survive_and_do_not_end_a_campaign(run, made, tmp_path):
    made.wrong = {2}
    run(2)
    assert len(list((tmp_path / "kept" / "7").glob("round-2-*/findings.json"))) == 1
    assert [outcome.findings.counts for outcome in run(3)] == [{}, {"lost": 1}, {}]


def test_a_kind_that_this_machine_cannot_do_is_left_out(run, made):
    made.skipped = {"pause"}
    assert {outcome.kind for outcome in run(6)} == {"leader"}


def test_the_summary_is_told_after_every_round_and_names_the_number_of_trials(run, made):
    told = []
    outcomes = run(3, told=told)
    assert [figures["together"]["faults"] for figures in told] == [2, 4, 6]
    said = summary(outcomes)
    assert said["together"]["promise"].startswith(
        "0 rounds in which records were lost, doubled or reordered, in 6 faults"
    )
    assert "50.0%" in said["together"]["promise"]
    assert said["together"]["promise"] in table(said)
    made.wrong = {4}
    assert summary(run(4))["together"]["promise"].startswith("1 rounds")


def test_calibration_aims_real_rounds_at_real_bugs():
    assert set(AIMED) <= set(BUGS)
    assert {kind for kinds in AIMED.values() for kind in kinds} <= set(KINDS)
