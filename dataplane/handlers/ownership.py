"""Whose a topic is, and what an owner may ask of it: the same rules for the tenant and for the control plane on its behalf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from dataplane.cluster.topic_policy import TopicPolicy, policy_of
from dataplane.handlers.context import RequestContext
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.records.steps import Steps
from dataplane.tasks import Future
from quota.contracts.instance import InstanceSpec
from quota.contracts.namespace import split_physical

T = TypeVar("T")

CONTROL_PLANE = "sluice-controlplane"
"""The client id of the control plane, which asks on the internal listener for a tenant. Operators' tools have others."""


def owner(ctx: RequestContext, physical: str) -> InstanceSpec | None:
    """The instance whose limits count, also where the control plane asks on its behalf; None: the cluster's own."""
    if ctx.session.instance is not None:
        return ctx.session.instance.spec
    parsed = split_physical(physical)
    instance = ctx.broker.registry.by_key(parsed[0]) if parsed is not None else None
    return instance.spec if instance is not None else None


def in_slices(ctx: RequestContext, steps: Steps[T]) -> Future[T]:
    """Long work for this request, a little in each turn; done at once where there is little of it."""
    return ctx.broker.slices.run(ctx.owner, steps)


def policy(ctx: RequestContext, physical: str) -> TopicPolicy | None:
    """What may be set about a topic, over what brokers take; None where it is the cluster's own.

    Operators of the cluster may throttle a tenant's replicas, as the tools for reassignment do.
    """
    if split_physical(physical) is None:
        return None
    found = policy_of(ctx.broker.config.settings)
    is_operator = ctx.session.is_internal and ctx.client_id != CONTROL_PLANE
    return replace(found, refused=()) if is_operator else found


def check_owners_limits(ctx: RequestContext, physical: str, overrides: Mapping[str, str], replicas: int) -> None:
    """What Kafka would take and a tenant may not have. `overrides` are valid ones. Raises ApiError.

    A batch beyond what the cluster is made for would cost the neighbours; more in-sync replicas than there are replicas
    is a topic that takes nothing, with an error that looks like an outage of ours.
    """
    rules = policy(ctx, physical)
    if rules is None:
        return
    rules.check(overrides)
    in_sync = int(overrides.get("min.insync.replicas", 0))
    if in_sync > replicas:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"min.insync.replicas can be {replicas} at most: the topic has no more replicas, and would take no write",
        )
