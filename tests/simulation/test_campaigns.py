"""Campaigns on whole clusters: seeds that once found something, a few others, and that planted bugs are found.

`make simulate` runs thousands; what it finds is kept here.
"""

import pytest

from tests.simulation import bugs
from tests.simulation.campaign import ROUNDS, run

PLANTED = {  # a seed that finds it
    "acknowledge before replication": 1,
    "acknowledge with an ISR of one": 0,
    "commit what only the leader has": 1,
    "never truncate": 20,
    "trust who restarted unseen": 12,  # a real one, once
    "forget producers": 0,
    "lead without writing the epoch": 0,
    "any life of a broker will do": 7,
}


@pytest.mark.parametrize("seed", [12, 7, 6, 1])
def test_nothing_acknowledged_is_lost_and_nothing_committed_is_taken_back(seed):
    outcome = run(seed)
    assert outcome.violation is None
    assert outcome.acknowledged > 50


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug):
    assert bugs.run_with(bug, PLANTED[bug], rounds=ROUNDS).violation is not None


def test_a_campaign_replays_bit_for_bit():
    assert run(7).trace == run(7).trace
