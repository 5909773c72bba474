"""What a decision puts into a partition's state beside leader and ISR: epochs, and the broker epochs of those that count."""

from dataplane.cluster.paths import NO_LEADER, PartitionState
from dataplane.controller.decisions import elections

ALIVE = {1: 61, 2: 62, 3: 63}
REPLICAS = (1, 2, 3)


def state_of(leader=1, isr=(1, 2, 3), eligible=(), last=NO_LEADER):
    epochs = {member: 30 + member for member in (*isr, *eligible)}
    return PartitionState(leader, 5, isr, 1, 9, eligible=eligible, last_leader=last, broker_epochs=epochs)


def test_the_first_state_is_of_this_controller_at_epoch_0_with_the_broker_epochs_of_all():
    found = elections.first_state(REPLICAS, {1: 61, 3: 63}, 7)
    assert found == PartitionState(1, 0, (1, 3), 7, broker_epochs={1: 61, 3: 63})


def test_an_isr_that_the_leader_proposes_is_written_by_this_controller_at_the_same_leader_epoch():
    found = elections.with_isr(state_of(isr=(1, 2)), (1, 2, 3), ALIVE, 7, 1)
    assert (found.isr, found.leader, found.leader_epoch, found.controller_epoch) == ((1, 2, 3), 1, 5, 7)
    assert found.broker_epochs == {1: 31, 2: 32, 3: 63}


def test_the_preferred_leader_leads_in_a_new_epoch_of_this_controller():
    found = elections.preferred(state_of(leader=2), REPLICAS, ALIVE, 7)
    assert (found.leader, found.isr, found.leader_epoch, found.controller_epoch) == (1, (1, 2, 3), 6, 7)


def test_a_dead_one_or_one_out_of_sync_is_not_preferred():
    assert elections.preferred(state_of(leader=2), REPLICAS, {2: 62}, 7) is None
    assert elections.preferred(state_of(leader=2, isr=(2, 3)), REPLICAS, ALIVE, 7) is None
    assert elections.preferred(state_of(leader=1), REPLICAS, ALIVE, 7) is None


def test_who_leaves_hands_over_in_a_new_epoch_of_this_controller():
    found = elections.without(state_of(), REPLICAS, ALIVE, 1, 7)
    assert (found.leader, found.isr, found.leader_epoch, found.controller_epoch) == (2, (2, 3), 6, 7)


def test_who_leaves_a_large_isr_is_not_eligible_and_of_one_that_gets_too_small_is():
    assert elections.without(state_of(isr=(1, 2)), REPLICAS, ALIVE, 1, 7).eligible == ()
    assert elections.without(state_of(isr=(1, 2)), REPLICAS, ALIVE, 1, 7, enough=2).eligible == (1,)
    assert elections.after_change(state_of(isr=(1, 2)), REPLICAS, {2: 62}, 7).eligible == ()


def test_who_may_have_lost_something_takes_over_from_nobody():
    assert elections.without(state_of(isr=(1, 2)), REPLICAS, ALIVE, 1, 7, lost=(2,)) is None
    found = elections.without(state_of(), REPLICAS, ALIVE, 1, 7, lost=(2,))
    assert (found.leader, found.isr) == (3, (3,))


def test_who_led_last_is_remembered_while_nobody_leads():
    gone = elections.after_change(state_of(leader=2, isr=(2,)), REPLICAS, {1: 61}, 7)
    assert (gone.leader, gone.last_leader) == (NO_LEADER, 2)
    lost = elections.after_change(gone, REPLICAS, {1: 61}, 8, lost=(2,))
    assert (lost.leader, lost.last_leader, lost.isr) == (NO_LEADER, 2, ())
