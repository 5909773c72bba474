"""One step of one member: it gives up before it takes, and waits for what others have."""

from uuid import UUID

import pytest

from dataplane.groups.consumer.model import Member, MemberState
from dataplane.groups.consumer.reconciliation import reconcile

T = UUID(int=1)
STABLE, UNREVOKED, UNRELEASED = MemberState


def member(state, epoch, *assigned, revoking=()):
    return Member("m", epoch=epoch, state=state, assigned=_of(assigned), revoking=_of(revoking))


def _of(partitions):
    return {T: tuple(partitions)} if partitions else {}


CASES = {
    # name: (before, target of epoch 5, taken by others, says that it owns), (state, epoch, assigned, revoking)
    "is at its target": ((member(STABLE, 5, 0), (0,), (), None), (STABLE, 5, (0,), ())),
    "gets what is free": ((member(STABLE, 4), (0, 1), (), None), (STABLE, 5, (0, 1), ())),
    "gets what is free and waits": ((member(STABLE, 4), (0, 1), (1,), None), (UNRELEASED, 5, (0,), ())),
    "waits for everything": ((member(STABLE, 4), (0, 1), (0, 1), None), (UNRELEASED, 5, (), ())),
    "nothing has changed for it": ((member(STABLE, 4, 0), (0,), (), None), (STABLE, 5, (0,), ())),
    "has to give up first": ((member(STABLE, 4, 0, 1), (1, 2), (), None), (UNREVOKED, 4, (1,), (0,))),
    "says that it has it still": ((member(STABLE, 4, 0, 1), (1,), (), (0, 1)), (UNREVOKED, 4, (1,), (0,))),
    "never took what it would give up": ((member(STABLE, 4, 0, 1), (1,), (), (1,)), (STABLE, 5, (1,), ())),
    "has not given up": ((member(UNREVOKED, 4, 1, revoking=(0,)), (1, 2), (), (0, 1)), (UNREVOKED, 4, (1,), (0,))),
    "does not say": ((member(UNREVOKED, 4, 1, revoking=(0,)), (1, 2), (), None), (UNREVOKED, 4, (1,), (0,))),
    "has given up and takes": ((member(UNREVOKED, 4, 1, revoking=(0,)), (1, 2), (), (1,)), (STABLE, 5, (1, 2), ())),
    "has given up and waits": ((member(UNREVOKED, 4, 1, revoking=(0,)), (1, 2), (2,), (1,)), (UNRELEASED, 5, (1,), ())),
    "has to give up more": ((member(UNREVOKED, 4, 1, revoking=(0,)), (2,), (), (1,)), (UNREVOKED, 4, (), (1,))),
    "what it waited for is free": ((member(UNRELEASED, 5, 0), (0, 1), (), None), (STABLE, 5, (0, 1), ())),
    "waits on": ((member(UNRELEASED, 5, 0), (0, 1), (1,), None), (UNRELEASED, 5, (0,), ())),
    "a newer target while it waits": ((member(UNRELEASED, 4, 0), (1,), (), None), (UNREVOKED, 4, (), (0,))),
}


@pytest.mark.parametrize("case", CASES)
def test_a_step(case):
    (before, target, taken, owned), (state, epoch, assigned, revoking) = CASES[case]
    said = None if owned is None else _of(owned)
    after = reconcile(before, 5, _of(target), lambda place: place[1] not in taken, said)
    assert (after.state, after.epoch, after.assigned, after.revoking) == (state, epoch, _of(assigned), _of(revoking))


def test_the_epoch_before_is_remembered():
    after = reconcile(member(STABLE, 4), 5, {}, lambda _: True, None)
    assert (after.epoch, after.previous_epoch) == (5, 4)


def test_a_member_that_has_nothing_to_do_is_the_same():
    before = member(STABLE, 5, 0)
    assert reconcile(before, 5, _of((0,)), lambda _: True, None) is before
