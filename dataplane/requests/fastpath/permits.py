"""Whether requests of a learned shape may take the short cut, asked once for each generation of their instance's access.

The slow path asks for every request: may the session do this to the topic, is its storage full, do throttle rules concern
the topic. A shape keeps the permit with which the answer was "nothing stands against it", and compares its generation
with the instance's: nothing of what was asked can have changed as long as they are equal (`tenancy.access`).

On the internal listener it is asked once for each shape, of the role: an identity that the slow path refuses would otherwise
be served from its second request on.

It is asked first, before anything is looked up or charged, as on the slow path. Whether the connection is about to be closed
(`Instance.ends`) is asked here as well: what makes it so raises the generation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.handlers.outcome import CloseConnectionError
from dataplane.protocol.errors import ErrorCode
from dataplane.tenancy.access import Operation, Permit, authorize, of_topic, passes

if TYPE_CHECKING:
    from dataplane.requests.served import Served

MUST_CLOSE = "a connection that is about to be closed"
"""Why a request was not served."""


def standing_permit(client: Served, operation: Operation, physical: str) -> Permit | None:
    """What a shape of this topic may keep; None: its requests go the slow way, which says why, or keeps the rules.

    Raises CloseConnectionError: it may not be open any more, and its turn to be closed has not come.
    """
    session = client.session
    instance = session.instance
    if instance is not None and instance.ends(session):
        raise CloseConnectionError(MUST_CLOSE)
    permit = authorize(session, operation, of_topic(physical))
    if isinstance(permit, ErrorCode):
        return None
    if operation is Operation.WRITE and client.broker.gate.produce_refusal(instance) is not None:
        return None
    if instance is not None and instance.rules is not None and instance.rules.concerns(physical):
        return None
    if instance is not None and instance.shadow is not None and not passes(session, operation, physical):
        return None  # the slow way counts each of them
    return permit
