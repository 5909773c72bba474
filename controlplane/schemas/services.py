"""Schemas are set and removed: with whose it is, and the audit trail."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.dry_runs import Outlook, differences
from controlplane.core.errors import Conflict, Invalid, NotFound, Unsupported
from controlplane.instances import leftovers
from controlplane.instances.selectors import instance_running_get
from controlplane.kafka import topics
from controlplane.schemas.decoding import Format, Part, Schema
from controlplane.schemas.models import MessageSchema
from controlplane.schemas.selectors import SchemaView, rows_of, schema_of, view_of
from controlplane.schemas.values import SchemaError
from quota.contracts.namespace import AUDIT_TOPIC, topic_name_problem

if TYPE_CHECKING:
    from collections.abc import Collection

    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation


def schema_set(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    topic: str,
    part: Part,
    schema: Schema,
    clock: Clock = SYSTEM_CLOCK,
) -> SchemaView:
    """The schema of a topic's keys or values, in the place of the one before.

    Raises NotFound, Invalid (saying what is wrong with it), Conflict (topic_reserved), Unsupported, ClusterUnavailable.
    """
    instance, topic_id = _to_change(organisation, instance_id, topic)
    schema = _compiled(schema)
    values: dict[str, Any] = {
        "organisation_id": instance.organisation_id,
        "name": topic,
        "format": schema.format,
        "framing": schema.framing,
        "definition": schema.definition,
        "message": schema.message,
        "compiled": b64encode(schema.compiled).decode(),
        "updated_at": clock.now(),
    }
    with transaction.atomic():
        before = rows_of(instance).select_for_update().filter(topic_id=topic_id, part=part).first()
        said = _trail(None if before is None else schema_of(before))
        row, _ = MessageSchema.objects.unscoped("found by instance and topic").update_or_create(
            instance=instance, topic_id=topic_id, part=part, defaults=values
        )
        detail = audit.changed(said, _trail(schema)) | {"part": str(part)}
        _audit(instance, actor, "topic.schema.set", topic, detail)
    return view_of(row)


def schema_set_check(
    *,
    organisation: Organisation,
    instance_id: str,
    topic: str,
    part: Part,
    schema: Schema,
) -> Outlook:
    """What schema_set would do. Raises what it would raise; nothing is written."""
    instance, topic_id = _to_change(organisation, instance_id, topic)
    schema = _compiled(schema)
    before = rows_of(instance).filter(topic_id=topic_id, part=part).first()
    return Outlook(differences(_said(None if before is None else schema_of(before)), _said(schema)))


def schema_delete(*, organisation: Organisation, actor: str, instance_id: str, topic: str, part: Part) -> None:
    """Messages are shown as bytes again. Raises NotFound (schema_not_found), Conflict, ClusterUnavailable."""
    instance, topic_id = _to_change(organisation, instance_id, topic)
    with transaction.atomic():
        row = _there(instance, topic_id, topic, part)
        detail = _trail(schema_of(row)) | {"part": str(part)}
        row.delete()
        _audit(instance, actor, "topic.schema.delete", topic, detail)


def schema_delete_check(*, organisation: Organisation, instance_id: str, topic: str, part: Part) -> Outlook:
    """What schema_delete would do. Raises what it would raise; nothing is removed."""
    instance, topic_id = _to_change(organisation, instance_id, topic)
    return Outlook(differences(_said(schema_of(_there(instance, topic_id, topic, part))), _said(None)))


def schemas_named(instance: Instance, name: str) -> list[int]:
    """Rows of topics that have this name or had it: to be forgotten once the topic is deleted."""
    if topic_name_problem(name):  # PostgreSQL takes no NUL
        return []
    return list(rows_of(instance).filter(name=name).values_list("pk", flat=True))


def schemas_forget(instance: Instance, rows: Collection[int]) -> None:
    """Of a topic that is deleted."""
    if rows:
        rows_of(instance).filter(pk__in=rows).delete()


def tidy(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Remove schemas of topics and instances that are gone; how many those were."""
    rows = MessageSchema.objects.unscoped("schemas of everyone's topics are tidied")
    return leftovers.tidy(rows, "schemas", clock=clock)


def _to_change(organisation: Organisation, instance_id: str, topic: str) -> tuple[Instance, str]:
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    if topic == AUDIT_TOPIC:
        raise Conflict(f"{topic} is the service's, and its messages are JSON", code="topic_reserved")
    found = topics.get(instance.cluster.address, instance.id, topic)
    if not found.id:
        raise Unsupported("the cluster gives topics no ids, by which a schema would be kept")
    return instance, found.id


def _there(instance: Instance, topic_id: str, topic: str, part: Part) -> MessageSchema:
    row = rows_of(instance).filter(topic_id=topic_id, part=part).first()
    if row is None:
        raise NotFound(f"the {part}s of {topic} have no schema", code="schema_not_found")
    return row


def _compiled(schema: Schema) -> Schema:
    if schema.format is Format.AVRO and schema.message:
        raise Invalid.field("message", "is of Protobuf: a schema of Avro has one type")
    try:
        return schema.compile()
    except SchemaError as error:
        field = "message" if schema.message and str(error).startswith("has no message ") else "definition"
        raise Invalid.fields([error.problem(field)]) from error


def _said(schema: Schema | None) -> dict[str, object]:
    """Its members as the API names them."""
    if schema is None:
        return {"format": None, "framing": None, "message": None, "definition": None}
    return {
        "format": str(schema.format),
        "framing": str(schema.framing),
        "message": schema.message,
        "definition": schema.definition,
    }


def _trail(schema: Schema | None) -> dict[str, object]:
    """The same for the audit trail, where the text itself would be too much."""
    found = _said(schema)
    if schema is not None:
        found["definition"] = f"sha256:{hashlib.sha256(schema.definition.encode()).hexdigest()[:16]}"
    return found


def _audit(instance: Instance, actor: str, action: str, topic: str, detail: dict[str, object]) -> None:
    audit.record(
        organisation=instance.organisation,
        actor=actor,
        action=action,
        target=f"{instance.id}/{topic}",
        detail=detail,
    )
