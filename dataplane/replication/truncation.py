"""Where two logs of a partition part, found by leader epochs; never by the high watermark, which lags behind (KIP-101).

A follower says with every fetch where it stands: its end and the epoch of its last batch. The leader looks up where
that epoch ended with *it*. If that is lower, or it does not know the epoch, the logs part at or before that place: it
answers with the largest epoch not above, and its end. The follower cuts its log to the smaller of the two ends of
that epoch, and asks again. After two quick changes of leader one answer is not enough (KIP-279), so this goes on
until the epochs agree; each round takes an epoch off the follower's log or offsets off its end, so there is an end.

    leader      epochs 0: 0-99     2: 100-149       asked about (epoch 1, offset 120) it answers (epoch 0, end 100),
    follower    epochs 0: 0-109    1: 110-119       and the follower cuts at 100
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.storage.log import Log

UNDEFINED = -1


def divergence(log: Log, last_fetched_epoch: int, fetch_offset: int) -> tuple[int, int] | None:
    """On the leader: None where the follower's log is a prefix of ours, else (epoch, its end offset with us).

    (-1, -1): we cannot say, the follower's epochs have nothing in common with ours.
    """
    if last_fetched_epoch == UNDEFINED:
        return None  # an empty log
    epoch, end_offset = log.epochs.end_offset(last_fetched_epoch, log.end_offset)
    return (epoch, end_offset) if epoch < last_fetched_epoch or end_offset < fetch_offset else None


def truncation_point(log: Log, epoch: int, end_offset: int) -> int:
    """On the follower: where to cut, given the leader's largest epoch that is not above our last, and its end there."""
    own_epoch, own_end = log.epochs.end_offset(epoch, log.end_offset)
    if own_epoch == UNDEFINED:
        return min(end_offset, log.end_offset)
    if own_epoch != epoch:  # we never had that epoch: keep what is older, and ask again about it
        return min(own_end, log.end_offset)
    return min(own_end, end_offset, log.end_offset)
