"""The same configurations set or reset for many topics: what would change for each, and one operation that does it.

Each topic is by itself. One that is not there, or whose change is refused, is named with the reason, and the others are changed.
The operation may be carried out again from its beginning (a worker died, the cluster did not answer): a configuration that has
its value already is set to it once more. What each topic had when the change was asked for stands in the operation, so that
the result says what was changed, however often it took.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import F

from controlplane.core import audit, operations
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.dry_runs import Outlook
from controlplane.core.errors import Conflict, Invalid, SluiceError, Unavailable
from controlplane.core.operations import ATTEMPTS, Finished, OperationKind, Step
from controlplane.instances.models import Instance, InstanceState
from controlplane.instances.selectors import instance_fresh, instance_running_get
from controlplane.kafka import topics
from quota.contracts.namespace import AUDIT_TOPIC

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.core.models import Operation
    from controlplane.tenants.models import Organisation

KIND = "topics.configure"
MOST_TOPICS = 200
NAMED_IN_AUDIT = 50
"""Topics of which the audit trail says every value; of the others the operation's result does."""
CHANGED, UNCHANGED, FAILED = "changed", "unchanged", "failed"
OUTCOMES = (CHANGED, UNCHANGED, FAILED)

Changes = dict[str, tuple[str | None, str | None]]
"""By configuration what was set before and afterwards; None: the topic says nothing, and has the default."""


@dataclass(frozen=True, slots=True)
class TopicPreview:
    """What would become of one topic."""

    name: str
    changes: Changes = field(default_factory=dict)
    refusal: SluiceError | None = None

    @property
    def outcome(self) -> str:
        """One of OUTCOMES."""
        return FAILED if self.refusal is not None else CHANGED if self.changes else UNCHANGED


def topics_configure_preview(
    *, organisation: Organisation, instance_id: str, names: Sequence[str], config: Mapping[str, str | None]
) -> list[TopicPreview]:
    """What would become of each topic, in the order of `names`. Raises NotFound, Invalid, Conflict, ClusterUnavailable."""
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    wanted = _wanted(names, config)
    before = _before(instance, wanted)
    to_ask = [name for name, found in before.items() if not isinstance(found, SluiceError)]
    refusals = topics.configs_set(instance.cluster.address, instance.id, to_ask, config, validate_only=True)
    away = next((each for each in refusals.values() if isinstance(each, Unavailable)), None)
    if away is not None:
        raise away
    return [_preview(name, before[name], refusals.get(name), config) for name in wanted]


def topics_configure_check(
    *, organisation: Organisation, instance_id: str, names: Sequence[str], config: Mapping[str, str | None]
) -> Outlook:
    """What topics_configure would do. Raises what it would raise; nothing is changed."""
    found = topics_configure_preview(organisation=organisation, instance_id=instance_id, names=names, config=config)
    _refuse_nothing_to_do(found)
    return Outlook(
        {f"{each.name}.{key}": change for each in found for key, change in each.changes.items()},
        problems=tuple(f"{each.name}: {each.refusal.detail}" for each in found if each.refusal is not None),
        begun=(operations.planned(KIND),),
    )


def topics_configure(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    names: Sequence[str],
    config: Mapping[str, str | None],
    clock: Clock = SYSTEM_CLOCK,
) -> Operation:
    """Begin it. Refused as a whole where no topic could be changed.

    Raises NotFound, Invalid, Conflict, LimitReached, ClusterUnavailable.
    """
    found = topics_configure_preview(organisation=organisation, instance_id=instance_id, names=names, config=config)
    _refuse_nothing_to_do(found)
    before = {each.name: {key: was for key, (was, _) in each.changes.items()} for each in found if each.refusal is None}
    with transaction.atomic():
        # A write of the row, behind which others wait who begin something on the instance: operations are counted.
        Instance.objects.for_organisation(organisation).filter(pk=instance_id).update(name=F("name"))
        operation = operations.start(
            organisation=organisation,
            kind=KIND,
            target=instance_id,
            actor=actor,
            arguments={"topics": [each.name for each in found], "config": dict(config), "before": before},
            clock=clock,
        )
        audit.record(
            organisation=organisation,
            actor=actor,
            action=KIND,
            target=instance_id,
            detail={
                "topics": [each.name for each in found],
                "config": dict(config),
                "operation_id": operation.id,
                "changes": _told(found),
            },
            clock=clock,
        )
    return operation


def _told(found: Sequence[TopicPreview]) -> dict[str, dict[str, dict[str, str | None]]]:
    """For the audit trail: of each topic that would change, what each configuration was and is to be."""
    changing = [each for each in found if each.changes and each.refusal is None]
    return {
        each.name: {key: {"from": was, "to": wanted} for key, (was, wanted) in each.changes.items()}
        for each in changing[:NAMED_IN_AUDIT]
    }


def register() -> None:
    """Make the kind of operation known."""
    operations.register(OperationKind(KIND, (Step("change topics", change_topics),)))


def change_topics(operation: Operation) -> Finished:
    """The one step. Raises Conflict, and ClusterUnavailable to be tried again, but for the last time: then that is the result."""
    arguments = operation.arguments
    instance = instance_fresh(operation.target)
    if instance.state != InstanceState.RUNNING:
        raise Conflict(f"the instance is {instance.state}, not running", code="instance_not_running")
    names = [name for name in arguments["topics"] if name != AUDIT_TOPIC]
    done = topics.configs_set(instance.cluster.address, instance.id, names, arguments["config"])
    away = next((each for each in done.values() if isinstance(each, Unavailable)), None)
    if away is not None and operation.attempts + 1 < ATTEMPTS:
        raise away
    rows = [_row(operation, name, done.get(name, _reserved())) for name in arguments["topics"]]
    counts = {outcome: sum(row["outcome"] == outcome for row in rows) for outcome in OUTCOMES}
    note = f"{counts[CHANGED]} changed, {counts[UNCHANGED]} as they were, {counts[FAILED]} failed"
    return Finished(note, {"instance_id": instance.id, **counts, "topics": rows})


def _row(operation: Operation, name: str, refusal: SluiceError | None) -> dict[str, Any]:
    """Of the operation's result."""
    if refusal is not None:
        return {"topic": name, "outcome": FAILED, "changes": {}, "code": refusal.code, "detail": refusal.detail}
    config, before = operation.arguments["config"], operation.arguments["before"].get(name)
    changes = {key: [was, config[key]] for key, was in (before or {}).items()}
    # One that would have been refused when it was asked for, and is not now: what it had is not known.
    outcome = CHANGED if changes or before is None else UNCHANGED
    return {"topic": name, "outcome": outcome, "changes": changes, "code": "", "detail": ""}


def _wanted(names: Sequence[str], config: Mapping[str, str | None]) -> list[str]:
    """Each once. Raises Invalid."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        raise Invalid.field("topics", "name at least one")
    if len(wanted) > MOST_TOPICS:
        raise Invalid.field("topics", f"must be at most {MOST_TOPICS}")
    if not config:
        raise Invalid.field("config", "name at least one configuration")
    return wanted


def _before(instance: Instance, names: Sequence[str]) -> dict[str, dict[str, str] | SluiceError]:
    """What is set for each, or why it cannot be changed. Raises ClusterUnavailable."""
    found = topics.configs(instance.cluster.address, instance.id, [name for name in names if name != AUDIT_TOPIC])
    away = next((each for each in found.values() if isinstance(each, Unavailable)), None)
    if away is not None:
        raise away
    return {name: found.get(name, _reserved()) for name in names}


def _preview(
    name: str,
    before: dict[str, str] | SluiceError,
    refusal: SluiceError | None,
    config: Mapping[str, str | None],
) -> TopicPreview:
    if isinstance(before, SluiceError):
        return TopicPreview(name, refusal=before)
    if refusal is not None:
        return TopicPreview(name, refusal=refusal)
    return TopicPreview(
        name, {key: (before.get(key), value) for key, value in config.items() if before.get(key) != value}
    )


def _refuse_nothing_to_do(found: Sequence[TopicPreview]) -> None:
    """Raises the refusal of the first topic where every one would be refused."""
    refusals = [each.refusal for each in found if each.refusal is not None]
    if len(refusals) == len(found):
        raise type(refusals[0])(f"topic {found[0].name}: {refusals[0].detail}", code=refusals[0].code)


def _reserved() -> Conflict:
    return Conflict(f"{AUDIT_TOPIC} is the service's: it can be read, and not be changed", code="topic_reserved")
