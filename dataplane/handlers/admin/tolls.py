"""What a request pays for the changes that it asks of the controller (`throttle.mutations`), and what it may do after waiting.

Whoever waits for his turn may lose meanwhile what let him ask: an administrator's last request must not be carried out when he is
one no more. So what was permitted before is asked again behind the wait.
"""

from __future__ import annotations

from dataplane.handlers.context import RequestContext
from dataplane.protocol.errors import ApiError
from dataplane.tenancy.access import refusal_if_shut_out
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


async def turn_came(ctx: RequestContext, toll: Free) -> bool:
    """Wait for the request's turn; whether access has changed meanwhile, so that it has to be asked again. Raises ApiError."""
    before = ctx.session.access_generation
    await toll.turn()
    check_let_in(ctx)
    return ctx.session.access_generation != before


def check_let_in(ctx: RequestContext) -> None:
    """Of a request that has waited. Raises ApiError: its client would not be let in any more."""
    refusal = refusal_if_shut_out(ctx.session)
    if refusal:
        raise ApiError(refusal, "the client is not let in any more")
