"""Loads are set up, changed and deleted; runs are asked for and stopped. The runner does the work (`runner`).

Who deletes a load says what becomes of its table: it is kept, and counts as a load until it is removed; or it is removed.
"""

from __future__ import annotations

import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.core import audit, ids, operations
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import ClusterUnavailable, Conflict, FieldProblem, Invalid, LimitReached, NotFound
from controlplane.core.sealed import sealed
from controlplane.instances.models import Instance
from controlplane.instances.selectors import instance_running_get
from controlplane.kafka import groups, topics
from controlplane.lake import ddl, schema_types
from controlplane.lake.errors import SchemaError
from controlplane.loads import installed, ranges, schedule
from controlplane.loads.destinations import DEFAULT_REGION, Format, Kind, folder_uri, place_of, problems
from controlplane.loads.models import UNDER_WAY, KeptTable, Load, LoadRun, RunState
from controlplane.loads.ranges import Asked
from controlplane.loads.selectors import kept_table_get, kept_tables_of, load_get
from quota.contracts.namespace import topic_name_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from controlplane.core.models import Operation
    from controlplane.tenants.models import Organisation

MOST_LOADS = 20
"""Of an instance, with the tables that deleted ones have left."""
MOST_RUNS_KEPT = 200
"""Of a load: older ones are forgotten when a new one is asked for."""
LONGEST_SCHEMA = 64 * 1024
FIRST_RUN = "load.run"
"""The kind of the operation that is over when the first run of a load is (`watching`)."""
DESTINATION = "must be s3://bucket/path, or folder: for a folder of the service"
_NAMED = ("kind", "bucket", "path")
BY_NAME = ("raw", "inferred")
"""Schemas that have a name; any other is Spark's DDL or JSON."""
CHANGEABLE = ("region", "access_key", "secret_key", "every_minutes", "enabled", "skip_expired")


def load_create(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    topic: str,
    kind: str,
    bucket: str = "",
    path: str = "",
    region: str = DEFAULT_REGION,
    access_key: str = "",
    secret_key: str = "",
    schema: str = "raw",
    every_minutes: int | None = None,
    skip_expired: bool = False,
    format: str = Format.DELTA,  # noqa: A002  # the API's word
    clock: Clock = SYSTEM_CLOCK,
) -> Load:
    """Set one up; with a schedule its first run waits at once. Raises NotFound, Invalid, Conflict, LimitReached, Unavailable."""
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    _check_possible()
    place = {"bucket": bucket, "path": path, "region": region, "access_key": access_key, "secret_key": secret_key}
    _refuse(place_problems(kind, **place) | member_problems(topic=topic, schema=schema, every_minutes=every_minutes))
    _check_there(instance, topic)
    load_id, now = ids.load_id(random.SystemRandom()), clock.now()
    load = Load(
        id=load_id, organisation=organisation, instance=instance, topic=topic, kind=kind, schema=schema,
        every_minutes=every_minutes, scheduled_at=now, next_start_at=schedule.first(every_minutes, now),
        created_at=now, created_by=actor, skip_expired=skip_expired, format=format,
    )  # fmt: skip
    load.folder = folder_uri(installed.folders(), organisation.pk, instance.pk, load_id)
    if kind == Kind.BUCKET:
        load.bucket, load.path, load.region, load.access_key = bucket, path, region, access_key
        load.secret_key = sealed(Load, "secret_key", secret_key.encode(), id=load_id)
    with transaction.atomic():
        Instance.objects.for_organisation(organisation).select_for_update(of=("self",)).get(pk=instance.pk)
        rows = Load.objects.for_organisation(organisation).filter(instance=instance)
        if rows.count() + kept_tables_of(instance).count() >= MOST_LOADS:
            raise LimitReached(
                f"an instance has at most {MOST_LOADS} loads, and tables that deleted ones have left",
                code="too_many_loads",
            )
        load.save(force_insert=True)
        _audit(
            load, actor, "create", {"topic": topic, "to": load.uri, "schema": schema, "every_minutes": every_minutes}
        )
    return load


def load_begin(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    topic: str,
    destination: str,
    format: str = Format.DELTA,  # noqa: A002  # the API's word
    begins_ms: int | None = None,
    ends_ms: int | None = None,
    clock: Clock = SYSTEM_CLOCK,
    **members: Any,
) -> tuple[Load, Operation]:
    """Set one up at a destination and load at once: all that the topic has, or what lies between two times, in ms since 1970.

    The operation ends when its first run has. `members`: the others of load_create. Raises what load_create and operations.start
    raise, and ClusterUnavailable.
    """
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    _check_possible()
    place = place_of(destination, installed.folders(), organisation.pk, instance_id)
    if place is None:
        raise Invalid.field("destination", DESTINATION)
    if place.kind not in installed.kinds():
        raise Invalid.field("destination", "this service writes to no buckets: say folder:")
    if ends_ms is not None and members.get("every_minutes") is not None:
        raise Invalid.field("every_minutes", "a load that ends at a time has no schedule")
    if begins_ms is not None and ends_ms is not None and begins_ms >= ends_ms:
        raise Invalid.field("to", "must be after `from`")
    _refuse(member_problems(topic=topic))
    _check_there(instance, topic)
    asked = _between(instance, topic, begins_ms, ends_ms)  # before rows are locked: brokers are asked
    into: dict[str, Any] = {"kind": place.kind.value, "bucket": place.bucket, "path": place.path}
    with transaction.atomic():
        with _of_destination():
            load = load_create(
                organisation=organisation, actor=actor, instance_id=instance_id, topic=topic, format=format, clock=clock,
                **into, **members,
            )  # fmt: skip
        run = run_ask(load, asked_by=actor, asked=asked, now=clock.now())
        assert run is not None, "it is the first"
        operation = operations.start(
            organisation=organisation, kind=FIRST_RUN, target=instance_id, actor=actor,
            arguments={"load": load.pk, "run": run.pk}, clock=clock,
        )  # fmt: skip
        _audit(load, actor, "run", {"run": run.pk, "operation_id": operation.id, **run.asked})
    return load, operation


@contextmanager
def _of_destination() -> Iterator[None]:
    """What is wrong with a bucket or its path is wrong with the destination, which named them."""
    try:
        yield
    except Invalid as error:
        if not any(each.field in _NAMED for each in error.errors):
            raise
        found = [("destination" if each.field in _NAMED else each.field, each.detail) for each in error.errors]
        raise Invalid.fields([FieldProblem(*each) for each in found]) from error


def _between(instance: Instance, topic: str, begins_ms: int | None, ends_ms: int | None) -> Asked:
    """What of the topic lies between two times now. Raises Invalid where nothing does, ClusterUnavailable."""
    if ends_ms is None:
        return Asked(begins_ms)
    cluster = instance.cluster.address
    places = [(topic, each.partition) for each in topics.get(cluster, instance.pk, topic).layout]
    held = groups.spans(cluster, instance.pk, places)
    if len(held) < len(places):
        raise ClusterUnavailable("a partition of the topic has no leader: what it holds is not known now")
    starts = {} if begins_ms is None else groups.offsets_at(cluster, instance.pk, places, begins_ms)
    ends = groups.offsets_at(cluster, instance.pk, places, ends_ms)
    found: dict[int, tuple[int, int]] = {}
    for place, span in held.items():
        # No record as new as a time: the partition ends before it.
        first = span.start if begins_ms is None else span.end if (at := starts.get(place)) is None else at
        last = span.end if (at := ends.get(place)) is None else at
        if max(first, span.start) < last:
            found[place[1]] = max(first, span.start), last
    if not found:
        raise Invalid.field("to", "the topic has no record in this time")
    if len(found) > ranges.MOST_PARTITIONS:
        raise Invalid.field("to", f"of a topic with more than {ranges.MOST_PARTITIONS} partitions all has to be loaded")
    return Asked(offsets=found)


@transaction.atomic
def load_update(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    load_id: str,
    changes: Mapping[str, Any],
    check: Callable[[Load], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Load:
    """Another schedule, or another key of the bucket. `check` is told the load as it is.

    Raises NotFound, Invalid, Unavailable.
    """
    if not changes:
        raise Invalid("nothing to change: give one of " + ", ".join(CHANGEABLE))
    load = _locked(load_get(organisation=organisation, instance_id=instance_id, load_id=load_id))
    if check is not None:
        check(load)
    keys = [name for name in ("region", "access_key", "secret_key") if name in changes]
    if keys and load.kind != Kind.BUCKET:
        raise Invalid.field(keys[0], "a load into a folder has no key")
    if "access_key" in changes and "secret_key" not in changes:
        raise Invalid.field("secret_key", "a new access key needs its secret")
    if keys:
        present = {"bucket": load.bucket, "path": load.path, "region": load.region, "access_key": load.access_key}
        given = {name: changes[name] for name in keys}
        _refuse(problems(**{**present, "secret_key": "kept", **given}))
    _refuse(member_problems(every_minutes=changes.get("every_minutes", load.every_minutes)))
    before = {name: getattr(load, name) for name in CHANGEABLE if name != "secret_key"}
    for name, value in before.items():
        setattr(load, name, changes.get(name, value))
    if "secret_key" in changes:
        load.secret_key = sealed(Load, "secret_key", changes["secret_key"].encode(), id=load.pk)
    after = {name: getattr(load, name) for name in before}
    if any(after[name] != before[name] for name in ("every_minutes", "enabled")):
        load.scheduled_at = clock.now()
        load.next_start_at = schedule.first(load.every_minutes, load.scheduled_at) if load.enabled else None
    elif keys and load.failures and load.every_minutes is not None and load.enabled:
        load.next_start_at = clock.now()  # it may have failed for the key's sake
    load.save(force_update=True)
    detail = audit.changed(before, after) | ({"secret_key": "given"} if "secret_key" in changes else {})
    _audit(load, actor, "update", detail)
    return load


@transaction.atomic
def load_delete(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    load_id: str,
    removes_table: bool = False,
    check: Callable[[Load], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """It runs no more; its table in our folder is kept, or removed within a minute. A copy in a bucket stays in any case.

    `check` is told the load as it is. Raises NotFound, Conflict while a run is under way.
    """
    load = _locked(load_get(organisation=organisation, instance_id=instance_id, load_id=load_id))
    if check is not None:
        check(load)
    runs = LoadRun.objects.unscoped("the load was found within its organisation").filter(load=load)
    runs.filter(state=RunState.WAITING).delete()
    if runs.filter(state=RunState.RUNNING).exists():
        raise Conflict("a run of this load is under way: stop it first", code="load_running")
    if runs.exists():  # else nothing was ever written
        now = clock.now()
        KeptTable(
            id=load.pk, organisation=load.organisation, instance=load.instance, topic=load.topic, folder=load.folder,
            deleted_at=now, deleted_by=actor, removed_at=now if removes_table else None,
        ).save(force_insert=True)  # fmt: skip
    _audit(
        load, actor, "delete", {"topic": load.topic, "to": load.uri, "table": "removed" if removes_table else "kept"}
    )
    load.delete()


@transaction.atomic
def kept_table_remove(
    *, organisation: Organisation, actor: str, instance_id: str, load_id: str, clock: Clock = SYSTEM_CLOCK
) -> None:
    """The table of a load that was deleted before goes within a minute. Raises NotFound."""
    table = kept_table_get(organisation=organisation, instance_id=instance_id, load_id=load_id)
    table.removed_at = clock.now()
    table.save(update_fields=["removed_at"])
    _audit(table, actor, "table_remove", {"topic": table.topic, "bytes": table.byte_count})


@transaction.atomic
def load_run(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    load_id: str,
    asked: Asked = Asked(),  # noqa: B008  # it is frozen
    clock: Clock = SYSTEM_CLOCK,
) -> LoadRun:
    """Ask for a run now. Raises NotFound, Invalid, Conflict: one waits or runs already, or the instance is not running."""
    instance_running_get(organisation=organisation, instance_id=instance_id)
    _check_possible()
    load = _locked(load_get(organisation=organisation, instance_id=instance_id, load_id=load_id))
    _refuse(ranges.problems(asked))
    run = run_ask(load, asked_by=actor, asked=asked, now=clock.now())
    if run is None:
        raise Conflict("a run of this load waits or is under way already", code="load_under_way")
    _audit(load, actor, "run", {"run": run.pk, **asked.to_json()})
    return run


@transaction.atomic
def load_stop(
    *, organisation: Organisation, actor: str, instance_id: str, load_id: str, clock: Clock = SYSTEM_CLOCK
) -> None:
    """Stop the run that waits or is under way; what it has committed stays. Raises NotFound, Conflict: there is none."""
    load = _locked(load_get(organisation=organisation, instance_id=instance_id, load_id=load_id))
    runs = LoadRun.objects.unscoped("the load was found within its organisation").filter(load=load)
    waiting = runs.filter(state=RunState.WAITING)
    stopped = waiting.update(state=RunState.STOPPED, ended_at=clock.now(), says="stopped before it began")
    if not stopped and not runs.filter(state=RunState.RUNNING).update(stop_asked=True):
        raise Conflict("no run of this load is under way", code="load_not_running")
    _audit(load, actor, "stop", {})


def run_ask(load: Load, *, asked_by: str, asked: Asked, now: datetime) -> LoadRun | None:
    """A run that waits; None: the load has one that waits or runs. The caller holds the lock on the load."""
    runs = LoadRun.objects.unscoped("the load was found within its organisation").filter(load=load)
    if runs.filter(state__in=UNDER_WAY).exists():
        return None
    kept = runs.order_by("-pk").values_list("pk", flat=True)[: MOST_RUNS_KEPT - 1]
    runs.exclude(pk__in=list(kept)).delete()
    run = LoadRun(
        load=load, organisation_id=load.organisation_id, asked_by=asked_by, asked=asked.to_json(), asked_at=now
    )
    run.save(force_insert=True)
    return run


def _locked(load: Load) -> Load:
    rows = Load.objects.unscoped("it was found within its organisation").select_for_update(of=("self",))
    found = rows.select_related("instance__cluster", "organisation").filter(pk=load.pk).first()
    if found is None:
        raise NotFound(f"no load {load.pk}")
    return found


def _check_possible() -> None:
    absent = installed.absence()
    if absent:
        raise Conflict(absent, code="loads_off")


def place_problems(kind: str, **place: str) -> dict[str, str]:
    """What is wrong with where a new load is to go, by name."""
    if kind not in installed.kinds():
        return {"kind": f"must be one of {', '.join(installed.kinds())}"}
    if kind == Kind.BUCKET:
        return problems(**place)
    given = [name for name in ("bucket", "path", "access_key") if place[name]]
    return dict.fromkeys(given, "a load into a folder of the service has none")


def member_problems(
    *, topic: str | None = None, schema: str = "raw", every_minutes: int | None = None
) -> dict[str, str]:
    """What is wrong with the rest of it, by name."""
    problem = None if topic is None else topic_name_problem(topic)
    found = {} if problem is None else {"topic": problem}
    if problem := _schema_problem(schema):
        found["schema"] = problem
    if every_minutes is not None and not schedule.LEAST_MINUTES <= every_minutes <= schedule.MOST_MINUTES:
        found["every_minutes"] = f"{schedule.LEAST_MINUTES} to {schedule.MOST_MINUTES}, or null: only when asked for"
    return found


def _schema_problem(schema: str) -> str:
    """Judged before Spark is started for it; empty: it can be one."""
    if not schema or len(schema) > LONGEST_SCHEMA:
        return f"raw, inferred, or Spark's DDL or JSON of at most {LONGEST_SCHEMA // 1024} KiB"
    if schema in BY_NAME:
        return ""
    try:
        schema_types.checked(ddl.read(schema))
    except SchemaError as error:
        return f"{error}; allowed are {ddl.ALLOWED}"
    return ""


def _check_there(instance: Instance, topic: str) -> None:
    try:
        topics.get(instance.cluster.address, instance.id, topic)
    except NotFound as error:
        raise Invalid.field("topic", f"the instance has no topic {topic}") from error


def _refuse(found: Mapping[str, str]) -> None:
    if found:
        raise Invalid.fields([FieldProblem(name, sentence) for name, sentence in found.items()])


def _audit(of: Load | KeptTable, actor: str, action: str, detail: dict[str, Any]) -> None:
    audit.record(
        organisation=of.organisation, actor=actor, action=f"load.{action}", target=f"{of.instance_id}/{of.pk}", detail=detail,
    )  # fmt: skip
