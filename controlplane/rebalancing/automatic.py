"""Rebalancing that begins by itself, as the operators of a cluster have set it: on new brokers, and on skew that lasts.

`look_after` is called by the clock and asks no broker: it reads how the cluster was seen to be loaded (`kept`). What calls for a
rebalance has to last, since a broker that restarts looks like a skewed cluster for a while. Then there is a proposal, as an
operator would make it, of the actor "system" and with its cause, which a worker plans. A later call has it carried out, where
that is set, and approved where that is needed.

Nothing begins while anything else is proposed or under way in the cluster, while a broker with replicas is away, and for some
hours after the last one. Once one that began by itself was called back, rolled back or has failed, the next are proposed only,
until an operator sets the rule again: a machine must not repeat what people have undone.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Q

from controlplane.clusters.models import Broker, PhysicalCluster
from controlplane.clusters.registering import decision_record
from controlplane.core.audit import SYSTEM
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import FieldProblem, Invalid, SluiceError
from controlplane.quotas.figures import brokers_last
from controlplane.rebalancing import services
from controlplane.rebalancing.causes import Aside, Cause, aside_of, cause_of, is_calm
from controlplane.rebalancing.kept import seen_last
from controlplane.rebalancing.models import UNDER_WAY, BalanceMode, BalanceRule, Rebalance, RebalanceState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from controlplane.rebalancing.causes import Found

LOG = logging.getLogger(__name__)
DECISION = "rebalancing"
LEAST_SKEW_PERCENT, MOST_SKEW_PERCENT = 20, 1000
"""A plan leaves brokers apart by the margin, of 10 %, above and below: less would call for one again and again."""
LEAST_LASTING_MINUTES, MOST_LASTING_MINUTES = 5, 24 * 60
LEAST_REST_HOURS, MOST_REST_HOURS = 1, 30 * 24
LONGEST_REASON = 1000
NEW_BROKER_LASTS = timedelta(minutes=10)
"""So long a broker is there before it is filled: one that is put up may be taken down again at once."""
LOAD_FRESH = timedelta(minutes=10)
FLOWS_FRESH = timedelta(minutes=5)
MOST_HISTORY = 100
MEMBERS = (
    "mode", "new_brokers", "skew_percent", "lasting_minutes", "rest_hours", "in_windows", "throttle_bytes_per_s", "at_once",
)  # fmt: skip
_OPEN = (RebalanceState.PLANNING, RebalanceState.PROPOSED, *UNDER_WAY)


def rule_of(cluster: PhysicalCluster) -> BalanceRule:
    """What is set for a cluster; where nothing was ever set, that nothing begins by itself."""
    return BalanceRule.objects.filter(pk=cluster.pk).first() or BalanceRule(cluster=cluster)


def modes() -> dict[int, str]:
    """What is set for clusters, by their keys; those for which nothing ever was are left out."""
    return dict(BalanceRule.objects.values_list("cluster", "mode"))


@transaction.atomic
def rule_set(
    *,
    cluster: PhysicalCluster,
    actor: str,
    changes: Mapping[str, Any],
    reason: str,
    check: Callable[[BalanceRule], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> BalanceRule:
    """Another rule from now on; what `changes` (of MEMBERS) does not name stays. `check` is told the rule. Raises Invalid.

    Setting what is set already is a decision, too: that it goes on after something was undone.
    """
    PhysicalCluster.objects.select_for_update().get(pk=cluster.pk)
    row = rule_of(cluster)
    if check is not None:
        check(row)
    before = {name: getattr(row, name) for name in MEMBERS}
    wanted = {**before, **changes}
    problems = _problems(wanted)
    if not changes:
        raise Invalid(f"nothing to change: give one or more of {', '.join(MEMBERS)}")
    if not reason.strip():
        problems.append(FieldProblem("reason", "must say why"))
    elif len(reason) > LONGEST_REASON:
        problems.append(FieldProblem("reason", f"must have at most {LONGEST_REASON} characters"))
    if problems:
        raise Invalid.fields(problems)
    for name in MEMBERS:
        setattr(row, name, wanted[name])
    row.changed_by, row.changed_at = actor, clock.now()
    row.waiting_for, row.waiting_since = "", None
    row.save()
    detail = {name: {"from": before[name], "to": wanted[name]} for name in MEMBERS if before[name] != wanted[name]}
    decision_record(cluster, actor, DECISION, detail, reason, clock)
    return row


def look_after(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Every cluster whose rule says more than nothing. Called twice at once it does no more than once."""
    for rule in BalanceRule.objects.exclude(mode=BalanceMode.OFF).select_related("cluster").order_by("pk"):
        try:
            _look_after(rule.cluster, clock)
        except SluiceError as error:  # one cluster must not cost the others theirs
            LOG.warning("%s is not rebalanced by itself: %s", rule.cluster, error.detail)


def only_proposes(rule: BalanceRule) -> bool:
    """Whether nothing is carried out by itself, though it may be: the last one was undone after the rule was set."""
    if rule.mode != BalanceMode.CARRY_OUT or rule.changed_at is None:
        return False
    undone_at = _undone_at(rule.cluster)
    return undone_at is not None and undone_at >= rule.changed_at


@transaction.atomic
def _look_after(cluster: PhysicalCluster, clock: Clock) -> None:
    PhysicalCluster.objects.select_for_update().get(pk=cluster.pk)  # whoever else begins something waits
    rule = rule_of(cluster)
    if rule.mode == BalanceMode.OFF:
        return
    rows = list(Rebalance.objects.filter(cluster=cluster, state__in=_OPEN).order_by("created_at", "pk"))
    if rows:
        _wait(rule, None, clock)
        if len(rows) == 1 and rows[0].cause and rows[0].state == RebalanceState.PROPOSED:
            _go_on(rows[0], rule, clock)
        return
    aside = set_aside(cluster)
    document = _load(cluster, clock.now())
    if document is None or not is_calm(document):
        return  # not known, or not to be judged now: what has lasted until now may go on
    found = cause_of(
        document,
        aside,
        new_brokers=rule.new_brokers,
        skew_percent=rule.skew_percent,
        with_flows=_are_flows_fresh(cluster, clock.now()),
    )
    since = _wait(rule, found, clock)
    if found is None or since is None or not _may_begin(rule, found, since, clock.now()):
        return
    row = _proposed(rule, found, aside, clock)
    _wait(rule, None, clock)
    LOG.info("%s: %s is proposed, since %s", cluster, row.id, found.text)


def _go_on(row: Rebalance, rule: BalanceRule, clock: Clock) -> None:
    """What becomes of a proposal of ours that is planned."""
    if not (row.summary or {}).get("moves"):
        services.rebalance_cancel(rebalance_id=row.id, actor=SYSTEM, clock=clock)  # there is nothing to gain
        return
    if rule.mode != BalanceMode.CARRY_OUT or only_proposes(rule):
        return
    if settings.ENVIRONMENT.rebalance_approval and not row.approved_by:
        return
    document = _load(rule.cluster, clock.now())
    if document is not None and is_calm(document) and row.expires_at > clock.now():
        services.rebalance_carry_out(rebalance_id=row.id, actor=SYSTEM, clock=clock)


def _wait(rule: BalanceRule, found: Found | None, clock: Clock) -> datetime | None:
    """Note what is there, and since when."""
    waiting_for = found.cause.value if found is not None else ""
    if waiting_for != rule.waiting_for:
        rule.waiting_for, rule.waiting_since = waiting_for, clock.now() if waiting_for else None
        rule.save(update_fields=["waiting_for", "waiting_since"])
    return rule.waiting_since


def _may_begin(rule: BalanceRule, found: Found, since: datetime, now: datetime) -> bool:
    """Whether it has lasted, and the last one is long enough ago."""
    lasts = NEW_BROKER_LASTS if found.cause is Cause.NEW_BROKER else timedelta(minutes=rule.lasting_minutes)
    last = _last_at(rule.cluster)
    return now - since >= lasts and (last is None or now - last >= timedelta(hours=rule.rest_hours))


def _proposed(rule: BalanceRule, found: Found, aside: Aside, clock: Clock) -> Rebalance:
    return services.rebalance_propose(
        cluster=rule.cluster,
        actor=SYSTEM,
        cause=found.text,
        draining=sorted(aside.draining),
        cordoned=sorted(aside.cordoned),
        demoted=sorted(aside.demoted),
        in_windows=rule.in_windows,
        throttle_bytes_per_s=rule.throttle_bytes_per_s,
        at_once=rule.at_once,
        clock=clock,
    )


def set_aside(cluster: PhysicalCluster) -> Aside:
    """Brokers that operators have drained, cordoned or demoted, as it stands now."""
    known = set(Broker.objects.filter(cluster=cluster).values_list("broker_id", flat=True))
    return aside_of(_history(cluster), known)


def _load(cluster: PhysicalCluster, now: datetime) -> Mapping[str, Any] | None:
    """As it was seen last; None: nobody has looked lately."""
    seen = seen_last(cluster)
    return seen["document"] if seen is not None and now - seen["at"] <= LOAD_FRESH else None


def _are_flows_fresh(cluster: PhysicalCluster, now: datetime) -> bool:
    """Whether a flow master has told of them lately: else a look at the cluster had old ones, or none."""
    _, said_at = brokers_last(cluster.address)
    return said_at is not None and now - said_at <= FLOWS_FRESH


def _history(cluster: PhysicalCluster) -> list[dict[str, Any]]:
    """Wishes of what was begun in a cluster and stands, the newest first."""
    begun = Rebalance.objects.filter(cluster=cluster, begun_at__isnull=False).exclude(state=RebalanceState.CANCELLED)
    rows = list(begun.order_by("-begun_at", "-pk").values_list("pk", "rollback_of", "wishes")[:MOST_HISTORY])
    undone = {of for _, of, _ in rows if of is not None}
    return [wishes for name, of, wishes in rows if of is None and name not in undone]


def _last_at(cluster: PhysicalCluster) -> datetime | None:
    """When the last one ended, or was made by itself. What operators only try out does not count."""
    rows = Rebalance.objects.filter(cluster=cluster).filter(Q(begun_at__isnull=False) | ~Q(cause=""))
    found = rows.aggregate(ended=Max("finished_at"), made=Max("created_at"))
    return max((at for at in found.values() if at is not None), default=None)


def _undone_at(cluster: PhysicalCluster) -> datetime | None:
    """When the last one that began by itself was called back or rolled back, or failed; None: it was not."""
    own = Rebalance.objects.filter(cluster=cluster, begun_at__isnull=False).exclude(cause="")
    last = own.order_by("-begun_at", "-pk").first()
    if last is None:
        return None
    if last.state in (RebalanceState.CANCELLING, RebalanceState.CANCELLED, RebalanceState.FAILED):
        return last.finished_at or last.begun_at
    back = Rebalance.objects.filter(rollback_of=last, begun_at__isnull=False).order_by("-begun_at").first()
    return back.begun_at if back is not None else None


def _problems(wanted: Mapping[str, Any]) -> list[FieldProblem]:
    found = services.pace_problems(wanted["throttle_bytes_per_s"], wanted["at_once"])
    if wanted["mode"] not in BalanceMode.values:
        found.append(FieldProblem("mode", f"must be one of {', '.join(BalanceMode.values)}"))
    bounds = {
        "lasting_minutes": (LEAST_LASTING_MINUTES, MOST_LASTING_MINUTES),
        "rest_hours": (LEAST_REST_HOURS, MOST_REST_HOURS),
    }
    if wanted["skew_percent"] is not None:
        bounds["skew_percent"] = LEAST_SKEW_PERCENT, MOST_SKEW_PERCENT
    found += [
        FieldProblem(name, f"must be at least {low} and at most {high}")
        for name, (low, high) in bounds.items()
        if not low <= wanted[name] <= high
    ]
    return found
