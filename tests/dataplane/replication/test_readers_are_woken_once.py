"""A fetch that waits is woken once, though what it waits for may be told again before its time has come."""

from __future__ import annotations

import pytest

from dataplane.replication.replica.waiters import ReadWaiter


@pytest.mark.parametrize("again", [lambda waiter: waiter.arrived(1), ReadWaiter.lost, ReadWaiter.expired])
def test_whatever_comes_later(again):
    woken = []
    waiter = ReadWaiter([], 1, lambda: woken.append(True))
    waiter.arrived(1)
    again(waiter)
    assert woken == [True]
