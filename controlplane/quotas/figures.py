"""The master's figures, and while no master answers, what it said last: with its age, and what brokers do meanwhile.

Kept in the cache every few seconds, for a day: they are worth having, and not worth a database's writes. While no master is
there, brokers go on by themselves (ALLOCATION): what they were granted holds until its lease ends, and then each lets through
its initial share, the limit divided by the partitions that it leads. So that is what is shown as what they may carry. Storage
that was full stays blocked; what has become full since is not noticed.

Each cluster has masters of its own: where those of one are away, the instances of the others still have figures of now.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.core.cache import cache

from controlplane.clusters import master
from controlplane.clusters.services import for_each_cluster
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Unavailable
from controlplane.core.kept import AWAY
from controlplane.core.portions import portions
from controlplane.instances.models import Instance, InstanceState
from controlplane.instances.selectors import instances_by_cluster
from controlplane.quotas.matrix import LEADERS, matrices_of
from quota.contracts.report import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from controlplane.clusters.address import ClusterAddress
    from controlplane.clusters.models import PhysicalCluster
    from controlplane.quotas.matrix import Matrix

    Documents = Mapping[str, Mapping[str, Any]]

LOG = logging.getLogger(__name__)
KEPT = timedelta(days=1)
LEASE_S = 10
AT_ONCE = 200
BROKERS = "figures:brokers"
LOOK_S, LED_LOOKS = 10, 3
LED_LATELY = timedelta(seconds=LOOK_S * (LED_LOOKS + 1))
"""Looks are kept of who leads what, so far back."""
LEAST_LOOKS = 2
"""Of fewer it is not known who led what before a broker went."""
NOT_YET = "allocation_unknown"
"""The master answers, and has not heard of the instance."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The masters' documents by instance id.

    `problems` has the instances whose documents are not of now, with the reason; `at` is of when the oldest of those
    are. None: nothing is known of them.
    """

    documents: Documents = field(default_factory=dict)
    problems: Mapping[str, Unavailable] = field(default_factory=dict)
    at: datetime | None = None
    age_s: int = 0

    @property
    def away(self) -> Unavailable | None:
        """Why not all of this is of now; None: it is."""
        return next(iter(self.problems.values()), None)

    @property
    def fresh(self) -> Documents:
        """The documents that are of now."""
        return {name: document for name, document in self.documents.items() if name not in self.problems}

    @property
    def meanwhile(self) -> str:
        """What brokers do without a master; nothing where there is one, or it was never heard."""
        if self.at is None:
            return ""
        if self.age_s <= LEASE_S:
            return "Brokers keep what they were granted until their leases end, 10 seconds after the last grant."
        return (
            "Leases have ended: each broker lets through its initial share, the limit divided by the partitions that it leads. "
            "Storage that was full stays blocked."
        )


def figures_get(
    instances: Sequence[Instance],
    ask: Callable[[ClusterAddress, Sequence[Instance]], Documents],
    *,
    clock: Clock = SYSTEM_CLOCK,
) -> Figures:
    """What `ask` says of these instances now, cluster by cluster; where no master answers, what was said last.

    The caller has the rows from a selector within an organisation, or is an operator.
    """
    found = Figures()
    for cluster, group in instances_by_cluster(instances):
        found = _joined(found, _figures_of(cluster, group, ask, clock))
    return found


def _joined(one: Figures, other: Figures) -> Figures:
    moments = [each for each in (one.at, other.at) if each is not None]
    return Figures(
        {**one.documents, **other.documents},
        {**one.problems, **other.problems},
        min(moments, default=None),
        max(one.age_s, other.age_s),
    )


def _figures_of(
    cluster: PhysicalCluster,
    instances: Sequence[Instance],
    ask: Callable[[ClusterAddress, Sequence[Instance]], Documents],
    clock: Clock,
) -> Figures:
    try:
        return Figures(ask(cluster.address, instances))
    except Unavailable as error:
        if error.code == NOT_YET:
            return Figures(problems={instance.id: error for instance in instances})
        return _last(instances, error, clock)


def _last(instances: Sequence[Instance], away: Unavailable, clock: Clock) -> Figures:
    names = {f"figures:{instance.id}": instance.id for instance in instances}
    now = clock.now()
    found = {names[key]: entry for key, entry in _cached(list(names)).items() if now - entry["at"] <= KEPT}
    problems = dict.fromkeys(names.values(), away)
    if not found:
        return Figures(problems=problems)
    at = min(entry["at"] for entry in found.values())
    age_s = max(0, int((now - at).total_seconds()))
    documents = {name: _as_brokers_do(entry["document"], age_s) for name, entry in found.items()}
    return Figures(documents, problems, at, age_s)


def _as_brokers_do(document: Mapping[str, Any], age_s: int) -> Mapping[str, Any]:
    """What brokers may carry since the last word: when the leases have ended, their initial shares."""
    if age_s <= LEASE_S:
        return document
    changed = {name: _initial(document[name]) for name in DIRECTIONS if document.get(name)}
    return {**document, **changed}


def _initial(direction: Mapping[str, Any]) -> dict[str, Any]:
    brokers = [
        {**broker, "allocation": broker["initial_share"], "branch": "initial", "explanation": ""}
        for broker in direction.get("brokers", ())
    ]
    return {**direction, "branch": "initial", "brokers": brokers}


def brokers_last(cluster: ClusterAddress) -> tuple[dict[int, dict[str, Any]], datetime | None]:
    """What a cluster's master said last of each broker, and when; None: it was never heard."""
    key = f"{BROKERS}:{cluster.id}"
    entry = _cached([key]).get(key)
    return ({row["broker"]: row for row in entry["document"]}, entry["at"]) if entry else ({}, None)


def matrices_last(cluster: ClusterAddress, measures: Sequence[str]) -> tuple[dict[str, Matrix], datetime] | None:
    """Some of matrix.MEASURES of all running instances of a cluster, as they were said last, and when.

    None: no master was ever heard, or one was heard between two looks.
    """
    keys = {_matrix_key(cluster.id, name): name for name in measures}
    entries = {keys[key]: entry for key, entry in _cached(list(keys)).items()}
    moments = {entry["at"] for entry in entries.values()}
    if len(entries) < len(keys) or len(moments) != 1:
        return None
    return {name: entry["matrix"] for name, entry in entries.items()}, moments.pop()


def led_lately(cluster: ClusterAddress, broker: int, now: datetime) -> set[str] | None:
    """Of which running instances a broker has led partitions within the last looks; None: no master was heard then.

    Of several looks: when somebody notices that a broker is away, the newest may already have others that lead. One look alone
    says as little as none: a worker that begins, or begins again, while a broker is away sees only who leads since.
    """
    keys = [f"{_led_key(cluster.id)}:{slot}" for slot in range(LED_LOOKS)]
    fresh = [entry["matrix"] for entry in _cached(keys).values() if now - entry["at"] <= LED_LATELY]
    if len(fresh) < LEAST_LOOKS:
        return None
    return {name for matrix in fresh for name, leaders in matrix.column(broker).items() if leaders}


def _led_key(cluster_id: int, now: datetime | None = None) -> str:
    """Of one look, in the place of that of half a minute ago; without a moment, of all."""
    key = f"{_matrix_key(cluster_id, LEADERS)}:looks"
    return key if now is None else f"{key}:{int(now.timestamp()) // LOOK_S % LED_LOOKS}"


def _matrix_key(cluster_id: int, measure: str) -> str:
    return f"figures:matrix:{cluster_id}:{measure}"


def figures_keep(*, clock: Clock = SYSTEM_CLOCK) -> dict[str, dict[str, Any]]:
    """Keep what the masters say of every instance that runs, and of brokers; the documents of now, by instance id.

    Beat has it done every 10 s, by `history`, which keeps the same figures for longer. Those of a cluster whose master does not
    answer, or hears of no broker, are not among them.
    """
    found: dict[str, dict[str, Any]] = {}
    for documents in for_each_cluster(lambda cluster: _keep_of(cluster, clock.now()), "figures"):
        found |= documents
    return found


def _keep_of(cluster: PhysicalCluster, now: datetime) -> dict[str, dict[str, Any]]:
    rows = Instance.objects.unscoped("everyone's figures are kept").filter(state=InstanceState.RUNNING, cluster=cluster)
    names = list(rows.order_by("pk").values_list("pk", flat=True))
    try:
        kept: dict[str, Any] = {}
        for part in portions(names, AT_ONCE):
            for document in master.allocations(cluster.address, part):
                try:
                    kept[f"figures:{document['instance']}"] = {"at": now, "document": _with_sums(document)}
                except (KeyError, TypeError, AttributeError) as error:  # one instance must not cost the others theirs
                    name = document.get("instance") if isinstance(document, dict) else document
                    LOG.warning("figures of %.32s are not kept: %r", name, error)
    except Unavailable:
        kept = {}
    try:
        brokers = master.brokers(cluster.address)
        kept_too = {f"{BROKERS}:{cluster.id}": {"at": now, "document": brokers}}
    except Unavailable as error:
        LOG.debug("figures are not kept: %s", error)
        brokers, kept_too = [], {}
    matrices = matrices_of(entry["document"] for entry in kept.values()) if kept else {}  # the last known ones stay
    _keep(
        kept
        | kept_too
        | {_matrix_key(cluster.pk, name): {"at": now, "matrix": each} for name, each in matrices.items()}
        | {_led_key(cluster.pk, now): {"at": now, "matrix": each} for name, each in matrices.items() if name == LEADERS}
    )
    if brokers and not any(row.get("reporting") for row in brokers):
        return {}  # it knows nothing, and says 0 of everything
    return {entry["document"]["instance"]: entry["document"] for entry in kept.values()}


def _with_sums(document: Mapping[str, Any]) -> dict[str, Any]:
    """As lists have it: what flows in all."""
    sums = {
        name: {**document[name], "flow": sum(broker["flow"] for broker in document[name].get("brokers", ()))}
        for name in DIRECTIONS
        if document.get(name)
    }
    return {**document, **sums}


def _keep(entries: dict[str, Any]) -> None:
    try:
        if entries:
            cache.set_many(entries, timeout=int(KEPT.total_seconds()))
    except AWAY as error:
        LOG.warning("figures are not kept: %s", error)


def _cached(keys: list[str]) -> dict[str, Any]:
    try:
        return cache.get_many(keys)
    except AWAY as error:
        LOG.warning("the last figures cannot be read: %s", error)
        return {}
