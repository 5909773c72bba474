"""Changing topics on a tenant's behalf: the cluster does it, this adds whose it is, the limit, and the audit trail.

The cluster decides in the end; the limit on partitions is checked here as well, because the internal listener speaks
for the cluster and not for the tenant.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.dry_runs import Outlook, differences
from controlplane.core.errors import AlreadyExists, Conflict, Invalid, LimitReached, SluiceError, Unsupported
from controlplane.instances import services as instances
from controlplane.instances.selectors import instance_running_get
from controlplane.instances.spec import config_of
from controlplane.kafka import topics
from controlplane.schemas.services import schemas_forget, schemas_named
from controlplane.topics.notes import NOTHING, note_changed, note_of, note_write, notes_forget, notes_named
from controlplane.topics.selectors import TopicView, topic_get
from quota.contracts.namespace import AUDIT_TOPIC, topic_name_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from controlplane.instances.models import Instance
    from controlplane.kafka.topics import Topic
    from controlplane.tenants.models import Organisation

    Check = Callable[[TopicView], None]
    """Told the topic as it is. Raises PreconditionFailed."""

_FORGETS: list[Callable[[Instance, str, datetime], None]] = []
"""Of what is kept about topics above this package, which knows nothing of it."""


def topic_create(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    name: str,
    partitions: int | None = None,
    replication_factor: int | None = None,
    config: Mapping[str, str] | None = None,
) -> TopicView:
    """Make a topic; what is not said is as the instance's `config` says.

    Raises Invalid, AlreadyExists, LimitReached, Conflict, ClusterUnavailable.
    """
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    shape = _shape_of_new(instance, name, partitions, replication_factor)
    topics.create(instance.cluster.address, instance.id, name, **shape, config=config or {})
    detail = {**shape, "config": dict(config or {})}
    _audit(organisation, actor, "topic.create", instance, name, detail)
    return topic_get(organisation=organisation, instance_id=instance_id, name=name)


def topic_create_check(
    *,
    organisation: Organisation,
    instance_id: str,
    name: str,
    partitions: int | None = None,
    replication_factor: int | None = None,
    config: Mapping[str, str] | None = None,
) -> Outlook:
    """What topic_create would do. Raises what it would raise; nothing is made."""
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    shape = _shape_of_new(instance, name, partitions, replication_factor)
    topics.create_check(instance.cluster.address, instance.id, name, **shape, config=config or {})
    return Outlook(differences({}, {"name": name, **shape, **_dotted(config or {})}))


def topic_update(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    name: str,
    partitions: int | None = None,
    config: Mapping[str, str | None] | None = None,
) -> TopicView:
    """Add partitions, set config. Raises NotFound, Invalid, Conflict, LimitReached, Unsupported, ClusterUnavailable.

    The cluster has no call that does both. Growth that it would refuse is found out before anything is changed; where it fails
    all the same, what was set stays, is on record, and the error says so (`members`: ``{"done": ["config"]}``).
    """
    instance, topic = _to_change(organisation, instance_id, name, partitions, config)
    cluster = instance.cluster.address
    grows_to = partitions if partitions is not None and partitions > topic.partitions else None
    detail: dict[str, object] = {}
    if config:
        if grows_to is not None:
            topics.grow_check(cluster, instance.id, name, grows_to)
        present = topics.config(cluster, instance.id, name)
        detail["config"] = audit.changed({member: present.get(member) for member in config}, config)
        topics.config_set(cluster, instance.id, name, config)
    if grows_to is not None:
        growth = audit.changed({"partitions": topic.partitions}, {"partitions": grows_to})
        try:
            topics.grow(cluster, instance.id, name, grows_to)
        except SluiceError as error:
            if config:
                refused = {"partitions": grows_to, "code": error.code, "reason": error.detail}
                _audit(organisation, actor, "topic.update", instance, name, detail | {"not_done": refused})
                _tell_half_done(error)
            raise
        detail |= growth
    _audit(organisation, actor, "topic.update", instance, name, detail)
    return topic_get(organisation=organisation, instance_id=instance_id, name=name)


def _tell_half_done(error: SluiceError) -> None:
    """The same error, which says what was done before it."""
    error.detail = f"the configuration was set; partitions were not added: {error.detail}"
    error.args = (error.detail,)
    error.members["done"] = ["config"]


def topic_update_check(
    *,
    organisation: Organisation,
    instance_id: str,
    name: str,
    partitions: int | None = None,
    config: Mapping[str, str | None] | None = None,
) -> Outlook:
    """What topic_update would do. Raises what it would raise; nothing is changed."""
    instance, topic = _to_change(organisation, instance_id, name, partitions, config)
    cluster = instance.cluster.address
    if config:
        topics.config_check(cluster, instance.id, name, config)
    if partitions is not None and partitions > topic.partitions:
        topics.grow_check(cluster, instance.id, name, partitions)
    before = {"partitions": topic.partitions, **_dotted(topics.config(cluster, instance.id, name))}
    after = {**before, **_dotted(config or {}), **({} if partitions is None else {"partitions": partitions})}
    return Outlook(differences(before, after))


def when_deleted(forget: Callable[[Instance, str, datetime], None]) -> None:
    """Have this called after a topic was deleted: (instance, the topic's name, when its deletion began)."""
    _FORGETS.append(forget)


def topic_delete(*, organisation: Organisation, actor: str, instance_id: str, name: str) -> None:
    """Delete a topic, its data, its whitelist, its note and its schemas. Raises NotFound, Conflict, ClusterUnavailable."""
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    _check_whose(name)
    was = _was(instance, name)
    notes, schemas, began = notes_named(instance, name), schemas_named(instance, name), SYSTEM_CLOCK.now()
    topics.delete(instance.cluster.address, instance.id, name)
    _audit(organisation, actor, "topic.delete", instance, name, was)
    notes_forget(instance, notes)
    schemas_forget(instance, schemas)
    for forget in _FORGETS:
        forget(instance, name, began)
    if name in instance.topic_whitelists:
        instances.instance_topic_whitelist_set(
            organisation=organisation, actor=actor, instance_id=instance_id, topic=name, cidrs=None
        )


def _was(instance: Instance, name: str) -> dict[str, object]:
    """What the audit trail says of a topic that is deleted: `config` is what differs from defaults. Raises NotFound."""
    cluster = instance.cluster.address
    topic = topics.get(cluster, instance.id, name)
    return {
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "config": topics.config(cluster, instance.id, name),
        "whitelist": instance.topic_whitelists.get(name),
    }


def topic_delete_check(*, organisation: Organisation, instance_id: str, name: str) -> Outlook:
    """What topic_delete would do. Raises what it would raise; nothing is deleted."""
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    _check_whose(name)
    topic = topics.get(instance.cluster.address, instance.id, name)
    before = {
        "name": name,
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "whitelist": instance.topic_whitelists.get(name),
    }
    return Outlook(differences(before, {}), problems=("its records would be deleted for good",))


def topic_whitelist_set(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    name: str,
    cidrs: Sequence[object] | None,
    check: Check | None = None,
) -> TopicView:
    """Who may use a topic, from now on; None: everyone who may connect. Raises NotFound, Invalid, ClusterUnavailable.

    `check` is told the topic once nobody else can change its whitelist.
    """
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    topics.get(instance.cluster.address, instance.id, name)
    instances.instance_topic_whitelist_set(
        organisation=organisation,
        actor=actor,
        instance_id=instance_id,
        topic=name,
        cidrs=cidrs,
        check=_check_of_instance(organisation, instance_id, name, check),
    )
    return topic_get(organisation=organisation, instance_id=instance_id, name=name)


def _check_of_instance(
    organisation: Organisation, instance_id: str, name: str, check: Check | None
) -> Callable[[Instance], None] | None:
    """Asks the cluster now, so that nobody waits for it behind a lock; the rest is as it is when the check is made."""
    if check is None:
        return None
    view = topic_get(organisation=organisation, instance_id=instance_id, name=name)

    def compare(locked: Instance) -> None:
        whitelist, note = locked.topic_whitelists.get(name), note_of(locked, view.topic.id)
        check(replace(view, whitelist=whitelist, note=note))

    return compare


def topic_note_set(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    name: str,
    note: str | None = None,
    tags: Sequence[str] | None = None,
    check: Check | None = None,
) -> TopicView:
    """Write about a topic; None: as it is. Raises NotFound, Invalid, Conflict, Unsupported, ClusterUnavailable.

    `check` is told the topic once nobody else can change its note or its whitelist.
    """
    instance, topic = _to_note(organisation, instance_id, name, note, tags)
    compare = _check_of_instance(organisation, instance_id, name, check)
    with transaction.atomic():
        locked = instance if compare is None else instances.instance_locked(organisation, instance_id)
        note_write(
            instance=instance,
            actor=actor,
            name=name,
            topic_id=topic.id,
            text=note,
            tags=tags,
            check=None if compare is None else lambda: compare(locked),
        )
    return topic_get(organisation=organisation, instance_id=instance_id, name=name)


def topic_note_check(
    *,
    organisation: Organisation,
    instance_id: str,
    name: str,
    note: str | None = None,
    tags: Sequence[str] | None = None,
    check: Check | None = None,
) -> Outlook:
    """What topic_note_set would do. Raises what it would raise; nothing is written."""
    instance, topic = _to_note(organisation, instance_id, name, note, tags)
    compare = _check_of_instance(organisation, instance_id, name, check)
    if compare is not None:
        compare(instance)
    before = note_of(instance, topic.id)
    after = note_changed(before, text=note, tags=tags)
    return Outlook(
        differences({"note": before.text, "tags": list(before.tags)}, {"note": after.text, "tags": list(after.tags)})
    )


def _to_note(
    organisation: Organisation, instance_id: str, name: str, note: str | None, tags: Sequence[str] | None
) -> tuple[Instance, Topic]:
    """Raises NotFound, Invalid, Conflict, Unsupported."""
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    if note is None and tags is None:
        raise Invalid("nothing to change: give note, tags or both")
    note_changed(NOTHING, text=note, tags=tags)
    topic = topics.get(instance.cluster.address, instance.id, name)
    if not topic.id:
        raise Unsupported("the cluster gives topics no ids, by which a note would be kept")
    return instance, topic


def _shape_of_new(
    instance: Instance, name: str, partitions: int | None, replication_factor: int | None
) -> dict[str, Any]:
    """With what is not said. Raises Invalid, AlreadyExists, LimitReached."""
    problem = topic_name_problem(name)
    if problem:
        raise Invalid.field("name", problem)
    defaults = config_of(instance.config)
    partitions = defaults["default_partitions"] if partitions is None else partitions
    replication_factor = defaults["default_replication_factor"] if replication_factor is None else replication_factor
    _check_limit(instance, adding=partitions * replication_factor, creating=name)
    return {"partitions": partitions, "replication_factor": replication_factor}


def _to_change(
    organisation: Organisation,
    instance_id: str,
    name: str,
    partitions: int | None,
    config: Mapping[str, str | None] | None,
) -> tuple[Instance, Topic]:
    """Raises NotFound, Invalid, Conflict, LimitReached."""
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    _check_whose(name)
    if partitions is None and config is None:
        raise Invalid("nothing to change: give partitions, config or both")
    topic = topics.get(instance.cluster.address, instance.id, name)
    if partitions is not None and partitions < topic.partitions:
        raise Invalid.field("partitions", f"the topic has {topic.partitions}; partitions cannot be taken away")
    more = 0 if partitions is None else partitions - topic.partitions
    if more:
        _check_limit(instance, adding=more * topic.replication_factor)
    return instance, topic


def _dotted(config: Mapping[str, str | None]) -> dict[str, str | None]:
    return {f"config.{name}": value for name, value in config.items()}


def _check_whose(name: str) -> None:
    if name == AUDIT_TOPIC:
        raise Conflict(f"{name} is the service's: it can be read, and not be changed", code="topic_reserved")


def _check_limit(instance: Instance, *, adding: int, creating: str | None = None) -> None:
    existing = topics.list_all(instance.cluster.address, instance.id)
    if creating is not None and any(topic.name == creating for topic in existing):
        raise AlreadyExists(f"there is a topic {creating}", code="topic_exists")
    used = sum(topic.replicas for topic in existing if topic.name != AUDIT_TOPIC)
    if used + adding > instance.partitions:
        raise LimitReached(
            f"the instance has {instance.partitions} partitions, replicas included: "
            f"{used} are used and {adding} more are asked for"
        )


def _audit(  # the order of the columns
    organisation: Organisation, actor: str, action: str, instance: Instance, name: str, detail: dict[str, object]
) -> None:
    audit.record(organisation=organisation, actor=actor, action=action, target=f"{instance.id}/{name}", detail=detail)
