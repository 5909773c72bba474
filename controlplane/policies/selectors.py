"""How the policy of an instance's disk stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.core.selectors import operation_list
from controlplane.instances.selectors import instance_get
from controlplane.policies import rules
from controlplane.policies.models import DiskPolicy, ShortenedTopic
from controlplane.policies.rules import Rule
from controlplane.policies.services import running_of
from controlplane.quotas.figures import figures_get
from controlplane.quotas.selectors import flows_get
from quota.contracts.instance import GIB

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    from controlplane.core.models import Operation
    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation


@dataclass(frozen=True, slots=True)
class DiskView:
    """A policy with what it has come to. `used_percent` None: no flow master says it now."""

    instance: Instance
    rule: Rule
    used_percent: float | None
    problem: str
    problem_at: datetime | None
    shortened: Sequence[ShortenedTopic]
    running: Operation | None


def rule_get(instance: Instance) -> Rule:
    """What the policy of an instance says that the caller has found."""
    policy = DiskPolicy.objects.unscoped("the caller has found the instance").filter(pk=instance.pk).first()
    return Rule() if policy is None else policy.rule


def problem_get(instance: Instance) -> str:
    """Why the policy of an instance that the caller has found could not act last; empty: it could, or need not."""
    rows = DiskPolicy.objects.unscoped("the caller has found the instance").filter(pk=instance.pk)
    return rows.values_list("problem", flat=True).first() or ""


def shortened_get(instance: Instance, topic: str) -> ShortenedTopic | None:
    """Of a topic of an instance that the caller has found; None: its retention is not shortened."""
    rows = ShortenedTopic.objects.unscoped("the caller has found the instance")
    return rows.filter(instance=instance, topic=topic).first()


def disk_get(*, organisation: Organisation, instance_id: str) -> DiskView:
    """Of an instance; without one the rule says so. Raises NotFound."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    policy = DiskPolicy.objects.for_organisation(organisation).filter(pk=instance.pk).first()
    document = figures_get([instance], flows_get).fresh.get(instance.pk, {})
    used = document.get("storage_used_bytes")
    shortened = ShortenedTopic.objects.for_organisation(organisation).filter(instance=instance).order_by("topic")
    return DiskView(
        instance,
        Rule() if policy is None else policy.rule,
        round(100 * used / (instance.storage_gib * GIB), 1) if isinstance(used, int) else None,
        "" if policy is None else policy.problem,
        None if policy is None else policy.problem_at,
        list(shortened),
        running_of(instance.pk).order_by("-created_at").first(),
    )


def acts(*, organisation: Organisation, instance_id: str) -> QuerySet[Operation]:
    """What policies of an instance did, and could not do, the newest first. The caller has found the instance."""
    rows = operation_list(organisation=organisation, target=instance_id)
    return rows.filter(kind__in=rules.KINDS).order_by("-created_at", "-pk")
