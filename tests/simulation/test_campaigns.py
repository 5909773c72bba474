"""Campaigns on whole clusters: seeds that once found something, a few others, and that planted bugs are found.

`make simulate` runs thousands; what it finds is kept here.
"""

import pytest

from tests.simulation import bugs
from tests.simulation.campaign import ROUNDS, run

PLANTED = {  # a seed that found it; where brokers have changed since, one of those after it does
    "acknowledge before replication": 0,
    "acknowledge with an ISR of one": 0,
    "commit what only the leader has": 0,
    "a proposed ISR counts at once": 1,
    "truncate to the high watermark": 2,
    "never truncate": 0,
    "lead without writing the epoch": 0,
    "ignore the controller's epoch": 36,
    "join the ISR while behind": 2,
    "trust who restarted unseen": 15,
    "commit with too few in sync": 0,
    "commit on what is only proposed": 0,
    "elect who has lost its tail": 305,  # a real one, once
    "a power cut loses nothing": 305,
    "eligible whatever the ISR": 333,
    "forget producers": 0,
    "any life of a broker will do": 301,
    "an exception ends the commit": 1,  # a real one
    "a removal is never late": 25,  # a real one
    "what comes again is corrupt": 30,  # a real one
    "a sync leaves the directory out": 7,
    "answer before the disk": 7,
    "a commit is on its leader alone": 26,
    "what is committed is stable": 0,
    "nobody hears what was aborted": 0,
    "nobody verifies": 0,
    "the epoch stays": 0,
    "an end raises no epoch": 0,
    "offsets of what was aborted count": 0,
    "a decision is not resumed": 3,
    "markers before the decision": 108,
}
"""Not among them, as they take too many seeds: "a sync counts whatever was cut", and since brokers have transactions "a late word
is obeyed". `--calibrate` looks for all of them."""
TRIES = 12


@pytest.mark.parametrize("seed", [2, 3, 8, 9, 12, 15, 22, 24, 107, 13391476, 13391558, 14242424, 3326564])
def test_nothing_acknowledged_is_lost_and_nothing_committed_is_taken_back(seed):
    outcome = run(seed)
    assert outcome.violation is None
    assert outcome.acknowledged > 50


SLOW = {
    "a removal is never late", "a power cut loses nothing", "elect who has lost its tail", "a decision is not resumed",
    "lead without writing the epoch", "what is committed is stable", "markers before the decision",
}  # fmt: skip
"""Each takes as long as ten of the others: they are found at night."""


@pytest.mark.parametrize("bug", [pytest.param(bug, marks=[pytest.mark.long] if bug in SLOW else []) for bug in PLANTED])
def test_a_planted_bug_is_found(bug):
    seeds = range(PLANTED[bug], PLANTED[bug] + TRIES)
    assert any(bugs.run_with(bug, seed, rounds=ROUNDS).violation is not None for seed in seeds)


@pytest.mark.long
def test_a_commit_that_a_successor_does_not_know_of_was_told_to_nobody():
    outcome = run(108, transfers=True)
    assert outcome.violation is None
    assert any(what.endswith("decides alone") for _, what in outcome.trace[1])


def test_seeds_that_have_transactions_by_themselves_go_without_the_faults_that_wait_for_these():
    assert "decision" in run(3, rounds=0, transfers=True).faults
    assert "decision" not in run(3, rounds=0).faults


def test_a_campaign_replays_bit_for_bit():
    assert run(7).trace == run(7).trace
