"""What a wait would have been without the moments in which broker or victim were kept from running."""

import pytest

from tests.stalls.pauses import Pause, Pauses, lost_ms

BROKER = Pauses([Pause(10.060, 10.080, 5.0), Pause(10.010, 10.030, 10.0)])


@pytest.mark.parametrize(
    ("since", "until", "lost"),
    [
        (10.000, 10.100, 15.0),  # all of both
        (10.000, 10.040, 10.0),  # the first only
        (10.000, 10.020, 5.0),  # half of the first
        (10.020, 10.040, 5.0),  # its other half
        (10.025, 10.030, 2.5),
        (10.031, 10.051, 0.0),  # between the two
        (10.100, 10.150, 0.0),  # behind both
    ],
)
def test_of_a_wait_is_lost_what_lies_in_it(since, until, lost):
    assert lost_ms(BROKER, Pauses(), since, until) == pytest.approx(lost)
    assert lost_ms(Pauses(), BROKER, since, until) == pytest.approx(lost)


def test_what_stopped_both_at_once_counts_once():
    everything = Pauses([Pause(10.000, 10.100, 100.0)])
    assert lost_ms(BROKER, everything, 10.000, 10.100) == pytest.approx(100.0)
    half = Pauses([Pause(10.010, 10.020, 10.0)])  # the first half of the broker's first
    assert lost_ms(BROKER, half, 10.000, 10.050) == pytest.approx(10.0 + 5.0)


def test_no_wait_becomes_less_than_nothing():
    assert lost_ms(Pauses([Pause(10.0, 10.1, 500.0)]), Pauses(), 10.0, 10.1) == pytest.approx(100.0)


def test_nothing_is_lost_where_no_pause_is_known():
    assert not Pauses()
    assert lost_ms(Pauses(), Pauses(), 10.0, 11.0) == 0.0
