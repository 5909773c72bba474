"""Looking at every policy: where the disk has reached its level, or there is room again, an operation begins.

A look asks each cluster's flow master once for a hundred instances, and nobody else: an instance whose policy has nothing to do
costs a row and a figure. What is to be done is decided by `rules.decide` and begun under the lock of the policy's row
(services.py); everything that asks brokers is the operation's, which looks again before it acts. Figures that are not of now
(the master is away) decide nothing. What is wrong with one policy keeps no other from being looked at.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

from django.db import OperationalError
from django.db.models import Q

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.portions import portions
from controlplane.instances.models import InstanceState
from controlplane.policies.models import DiskPolicy, ShortenedTopic
from controlplane.policies.rules import NONE, decide, is_reached
from controlplane.policies.services import act_begin
from controlplane.policies.telling import unstuck
from controlplane.quotas.figures import figures_get
from controlplane.quotas.selectors import flows_get
from quota.contracts.instance import GIB

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

LOG = logging.getLogger(__name__)
AT_ONCE = 100
_REASON = "everyone's policies are looked at"


def evaluate(*, clock: Clock = SYSTEM_CLOCK) -> Counter[str]:
    """Look at every policy of every instance that runs; how many operations were begun, by kind."""
    shortened = ShortenedTopic.objects.unscoped(_REASON)
    due = (
        DiskPolicy.objects.unscoped(_REASON)
        .filter(instance__state=InstanceState.RUNNING)
        .filter(Q(acts_next_at=None) | Q(acts_next_at__lte=clock.now()))
        .filter(~Q(policy=NONE) | Q(instance__in=shortened.values("instance")))
    )
    names = list(due.order_by("pk").values_list("pk", flat=True))
    found: Counter[str] = Counter()
    for part in portions(names, AT_ONCE):
        policies = list(due.filter(pk__in=part).select_related("instance__cluster").order_by("pk"))
        figures = figures_get([policy.instance for policy in policies], flows_get, clock=clock).fresh
        are_shortened = set(shortened.filter(instance__in=part).values_list("instance_id", flat=True))
        for policy in policies:
            kind = _looked_at(policy, figures.get(policy.pk), policy.pk in are_shortened, clock)
            found.update([kind] if kind else [])
    return found


def _looked_at(policy: DiskPolicy, document: Mapping[str, Any] | None, is_shortened: bool, clock: Clock) -> str | None:
    used, bought = _bytes_of(document), round(policy.instance.storage_gib * GIB)
    try:
        act = decide(
            policy.rule,
            used_bytes=used,
            storage_bytes=bought,
            is_shortened=is_shortened,
            is_to_put_back=policy.to_put_back,
        )
        if act is None:
            if policy.problem and used is not None and not is_reached(policy.level_percent, used, bought):
                unstuck(policy)
            return None
        begun = act_begin(instance_id=policy.pk, act=act, revision=policy.revision, clock=clock)
    except OperationalError:
        raise  # the database is away: that is nobody's policy's fault
    except Exception:
        LOG.exception("the policy of %s cannot be looked at", policy.pk)
        return None
    return None if begun is None else begun.kind


def _bytes_of(document: Mapping[str, Any] | None) -> int | None:
    used = (document or {}).get("storage_used_bytes")
    return used if isinstance(used, int) and not isinstance(used, bool) else None
