"""What a request pays for the changes that it asks of the controller (`throttle.mutations`)."""

from __future__ import annotations

from dataplane.handlers.context import RequestContext
from dataplane.throttle.mutations import FREE, Free, PatientToll, StrictToll, mutation_bucket


def toll_of(ctx: RequestContext, *, strict_since: int, timeout_ms: int) -> Free:
    """`strict_since`: the first version of its API that knows THROTTLING_QUOTA_EXCEEDED."""
    instance, broker = ctx.session.instance, ctx.broker
    if instance is None:
        return FREE
    loop = broker.doors.loop
    bucket = mutation_bucket(instance, broker.config.settings, loop.clock.monotonic())
    if ctx.version >= strict_since:
        return StrictToll(bucket, loop)
    return PatientToll(bucket, loop, timeout_ms / 1000)
