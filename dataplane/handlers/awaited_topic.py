"""A coordinator's topic, made when somebody first needs it; who needs it waits a little."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.tasks import Future

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext

CREATION_WAIT_S = 2.0
"""So long an answer waits for the internal topic to be created; then the client asks again."""


async def topic_exists(ctx: RequestContext, topic: str) -> None:
    """Create it, and wait. If it is still missing then, the answer says so."""
    either: Future[None] = Future()
    timer = ctx.broker.doors.loop.call_later(CREATION_WAIT_S, lambda: either.resolve(None))
    ctx.broker.ensure_internal_topic(topic).then(lambda _: either.resolve(None))
    await either
    timer.cancel()
