"""Who has not logged in at the internal listener: few of each address, few in all, the oldest makes room."""

from types import SimpleNamespace

import pytest

from dataplane.security import strangers as module
from dataplane.security.attempts import LEAST_DELAY_S, MOST_DELAY_S
from dataplane.security.strangers import Strangers


class Connection:
    def __init__(self, peer):
        self.session = SimpleNamespace(peer=peer)
        self.is_closed = False

    def close(self):
        self.is_closed = True


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(module, "MOST", 6)
    monkeypatch.setattr(module, "MOST_OF_A_SOURCE", 3)


def came(strangers, *peers):
    made = [Connection(peer) for peer in peers]
    for one in made:
        strangers.came(one)
    return made


def closed(connections):
    return [place for place, one in enumerate(connections) if one.is_closed]


def test_the_oldest_of_an_address_makes_room_for_the_next_of_it_and_others_stay():
    strangers = Strangers()
    ours = came(strangers, "broker")
    theirs = came(strangers, *["attacker"] * 10)
    assert closed(theirs) == list(range(7))
    assert not ours[0].is_closed
    assert (len(strangers), strangers.made_room) == (4, 7)


def test_the_oldest_of_all_makes_room_when_there_are_too_many():
    strangers = Strangers()
    those = came(strangers, *(f"attacker {n}" for n in range(10)))
    assert closed(those) == [0, 1, 2, 3]
    assert len(strangers) == 6


def test_who_has_logged_in_or_gone_takes_no_place():
    strangers = Strangers()
    those = came(strangers, *["broker"] * 3)
    for one in (*those, *those):
        strangers.went(one)
    assert len(strangers) == 0
    assert closed(came(strangers, *["broker"] * 3)) == []
    assert closed(those) == []


def test_a_failure_is_told_later_the_more_there_were_from_its_address():
    strangers = Strangers()
    delays = [strangers.failed_s("attacker", now) for now in range(8)]
    assert delays[0] == LEAST_DELAY_S
    assert delays == sorted(delays)
    assert delays[-1] == MOST_DELAY_S
    assert strangers.failed_s("broker", 8.0) == LEAST_DELAY_S
    assert strangers.failed == 9
