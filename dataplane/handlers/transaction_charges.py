"""What a transaction leaves in its coordinator's log is its instance's, as what groups store: from the same bucket.

Every change writes the id with all partitions that it has, which only the coordinator knows: so it is charged here, and the
next request of this kind waits for it (`throttle.tolls`). A partition that is added has to get a marker, however the
transaction ends: that is charged with it, or a request of a few kilobytes would have thousands of logs written to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext
    from quota.core.bucket import TokenBucket

_RECORD_BYTES, _PARTITION_BYTES, MARKER_BYTES = 100, 8, 78
"""A record with its batch; a partition with its part of a topic's name; a marker."""


def charge(ctx: RequestContext, transactional_id: str, *, records: int = 1, added: int = 0) -> None:
    """For so many records of an id, as it is before the request, and for partitions that are added to its transaction."""
    instance = ctx.session.instance
    if instance is None or instance.group_bucket is None:
        return
    found = ctx.broker.transactions.find(transactional_id)
    partitions = 0 if isinstance(found, ErrorCode) else len(found.partitions)
    one = _RECORD_BYTES + len(transactional_id) + partitions * _PARTITION_BYTES
    _charge(ctx, instance.group_bucket, records * one + added * MARKER_BYTES)


def charge_markers(ctx: RequestContext, count: int) -> None:
    """For so many markers that a tenant has written itself."""
    instance = ctx.session.instance
    if instance is not None and instance.group_bucket is not None:
        _charge(ctx, instance.group_bucket, count * MARKER_BYTES)


def _charge(ctx: RequestContext, bucket: TokenBucket, size: int) -> None:
    """With the request itself."""
    ctx.broker.debt_queues.charge(bucket, ctx.sender, ctx.size + size, ctx.broker.doors.clock.monotonic())
