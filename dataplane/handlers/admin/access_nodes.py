"""What ACLs and users have in common: whose they are, who may change them, and how a change is put in force.

Whichever broker is asked writes their node itself (`cluster.beside`), and answers when it acts by the change; the others
follow by their watches, in milliseconds. What is shown is what this broker acts by. The names inside are the tenant's own.

What is written is read again by every broker, so a change has the rate of other changes that all instances share
(decision 9): one a request, however many elements it has. Clients do not come again by themselves, so the request waits.

Right before each write it is asked again who may (`tolls`).
"""

from __future__ import annotations

from collections.abc import Callable

from dataplane.cluster.beside import Decide, write_beside
from dataplane.doors import ZooKeeperError
from dataplane.handlers.admin.tolls import check_let_in, toll_of
from dataplane.handlers.context import RequestContext
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.tasks import either, sleep
from dataplane.tenancy.access import CLUSTER, Operation, why
from quota.contracts.instance import InstanceSpec

_NEVER = 2**15
_PATIENCE_MS = 10_000
_IN_FORCE_WITHIN_S = 2.0
"""Then the answer goes nevertheless: this broker follows ZooKeeper as the others do."""


def spec_of(ctx: RequestContext, operation: Operation) -> InstanceSpec:
    """Of the instance whose ACLs or users are meant. Raises ApiError: there are none here, or the session may not."""
    instance = ctx.session.instance
    if instance is None:
        raise ApiError(
            ErrorCode.SECURITY_DISABLED, "ACLs and users belong to an instance, and this is the cluster's listener"
        )
    refusal = ctx.refusal(operation, CLUSTER)
    if refusal:
        raise ApiError(refusal, why(refusal))
    if instance.spec.acls is None or instance.spec.users is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    return instance.spec


def check_still(ctx: RequestContext, operation: Operation) -> None:
    """Of a request that has waited: the session still gets in, and may do this to the cluster. Raises ApiError."""
    check_let_in(ctx)
    ctx.check_cluster(operation)


async def put_in_force(
    ctx: RequestContext, instance: str, path: str, decide: Decide, is_there: Callable[[InstanceSpec], bool]
) -> None:
    """Write what `decide` says, and wait until this broker `is_there`. Raises ApiError."""

    async def decide_if_he_still_may(before: bytes | None) -> bytes | None:
        data = await decide(before)
        check_still(ctx, Operation.ALTER)
        return data

    toll, broker = toll_of(ctx, strict_since=_NEVER, timeout_ms=_PATIENCE_MS), ctx.broker
    try:
        await toll.turn()
        toll.pay(1)
        await write_beside(broker.doors.zookeeper, instance, path, decide_if_he_still_may)
    except ZooKeeperError as error:
        raise ApiError(
            ErrorCode.REQUEST_TIMED_OUT, "the change may have been made or not: look, and ask again"
        ) from error
    finally:
        toll.decided()
    in_force = broker.registry.until(instance, is_there)
    if not await either(in_force, sleep(broker.doors.loop, _IN_FORCE_WITHIN_S)):
        in_force.resolve(None)  # it waits no longer
