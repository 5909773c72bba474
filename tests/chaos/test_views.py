"""A broker that tells clients something else than ZooKeeper holds is found, whatever it is about."""

from tests.chaos.views import differences

HELD = (3, {0: (1, 5, (1, 2, 3)), 1: (2, 4, (2, 3))})


def test_a_broker_that_says_the_same_is_not_found():
    assert differences(1, HELD, HELD) == []


def test_a_former_controller_an_older_epoch_and_a_partition_left_out_are_found():
    assert differences(1, (2, HELD[1]), HELD) == ["broker 1 says that 2 is the controller, and ZooKeeper 3"]
    (older,) = differences(1, (3, {**HELD[1], 0: (1, 4, (1, 2, 3))}), HELD)
    assert "of partition 0 (1, 4, (1, 2, 3))" in older
    (left_out,) = differences(1, (3, {0: HELD[1][0]}), HELD)
    assert "of partition 1 None" in left_out
