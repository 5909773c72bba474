"""Campaigns on whole clusters: seeds that once found something, a few others, and that planted bugs are found.

`make simulate` runs thousands; what it finds is kept here.
"""

import pytest

from tests.simulation import bugs
from tests.simulation.campaign import run

FOUND = {
    12: "a leader bounced while there was no controller, and went on in its old epoch without its log's tail",
    163: "the same, and a follower that had more was cut",
    295: "what only the last replica standing had was committed, and lost in its power cut",
}


@pytest.mark.parametrize("seed", [*FOUND, 1, 2])
def test_nothing_acknowledged_is_lost_and_nothing_committed_is_taken_back(seed):
    outcome = run(seed)
    assert outcome.violation is None
    assert outcome.acknowledged > 50


@pytest.mark.parametrize(
    ("bug", "seed"), [("acknowledge before replication", 0), ("commit what only the leader has", 0)]
)
def test_a_planted_bug_is_found(bug, seed):
    with bugs.planted(bug):
        outcomes = [run(each) for each in range(seed, seed + 8)]
    assert any(outcome.violation for outcome in outcomes)


def test_a_campaign_replays_bit_for_bit():
    assert run(7).trace == run(7).trace
