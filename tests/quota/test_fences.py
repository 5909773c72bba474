"""What an instance stores over all brokers, and its fence: up when it is full, down under 97 %."""

import pytest

from quota.core.fence import Fences
from quota.core.limited import Limited

GONE, FULL = "ins-gone", "ins-full"


def stored(*sizes, instance=FULL):
    fences = Fences()
    for broker, size in enumerate(sizes, 1):
        fences.store(instance, broker, size)
    return fences


def test_a_broker_that_says_it_again_counts_once():
    fences = stored(100, 50)
    fences.store(FULL, 1, 70)
    assert fences.used_bytes == {FULL: 120}


def test_what_was_on_a_broker_goes_with_it_and_the_last_one_takes_the_instance_along():
    fences = stored(100, 50)
    assert not fences.forget(FULL, 1)
    assert fences.used_bytes == {FULL: 50}
    assert not fences.forget(FULL, 3), "it had nothing there"
    assert fences.used_bytes == {FULL: 50}
    assert fences.forget(FULL, 2)
    assert fences.used_bytes == {}
    assert fences.forget(FULL, 2)


def test_an_instance_that_nobody_stores_anything_of_is_forgotten_without_a_word():
    fences = Fences()
    assert fences.forget(GONE, 1)
    assert fences.used_bytes == {}


@pytest.mark.parametrize(
    ("used", "limit", "may_fall", "was", "up"),
    [
        (999, 1000, True, False, False),
        (1000, 1000, True, False, True),
        (980, 1000, True, True, True),
        (970, 1000, True, True, True),
        (969, 1000, True, True, False),
        (969, 1000, False, True, True),
        (5000, None, False, True, False),
        (0, 0, True, False, True),
    ],
)
def test_it_goes_up_at_the_limit_and_down_under_97_percent(used, limit, may_fall, was, up):
    fences = stored(used)
    fences.move(FULL, up=was)
    assert fences.look(FULL, limit, may_fall=may_fall) == (was is not up)
    assert fences.is_up[FULL] is up


@pytest.mark.parametrize(("used", "up"), [(0, False), (969, False), (980, False), (1000, True)])
@pytest.mark.parametrize("may_fall", [True, False])
def test_it_is_down_until_it_is_looked_at_for_the_first_time(used, up, may_fall):
    fences = stored(used)
    assert fences.look(FULL, 1000, may_fall=may_fall), "a first look always moves it"
    assert fences.is_up == {FULL: up}


def test_an_instance_that_nobody_has_reported_stores_nothing():
    fences = Fences()
    fences.look(FULL, 1, may_fall=True)
    assert fences.is_up == {FULL: False}
    fences.look(FULL, 0, may_fall=True)
    assert fences.is_up == {FULL: True}


def test_it_moves_when_it_is_put_elsewhere_and_when_it_is_put_up_first():
    fences = Fences()
    assert fences.move(FULL, up=False)
    assert not fences.move(FULL, up=False)
    assert fences.move(FULL, up=True)
    assert not fences.move(FULL, up=True)


def test_only_fences_of_instances_that_are_there_are_kept():
    fences = Fences()
    for instance in (FULL, GONE):
        fences.move(instance, up=True)
    fences.keep({FULL})
    assert fences.is_up == {FULL: True}


def test_each_direction_has_its_limit():
    limited = Limited(300, 200, "ckafka")
    assert (limited.limit("produce"), limited.limit("consume")) == (300, 200)
