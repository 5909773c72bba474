"""Instances: buying, resizing, settings, who may connect, deleting."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said, whole_or_null
from controlplane.cli.errors import Missing, Misused
from controlplane.cli.options import (
    Cidrs,
    Commands,
    ConfirmPrice,
    Instance,
    Limit,
    Prefix,
    Since,
    Sort,
    Until,
    Wait,
    Yes,
)
from controlplane.cli.output import INCOMPLETE
from controlplane.cli.session import Session, of
from controlplane.cli.tables import columns
from controlplane.cli.values import plain, since

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

app = Commands("Instances: a Kafka of your own each.")
LISTED = columns(
    "id", "name", "state", "bandwidth_mib_per_s", "storage_gib", "partitions", "bootstrap", health="health.state"
)
NAMED = columns("id", "name")
SCHEDULED = columns("id", "at", "state", "bandwidth_mib_per_s", "storage_gib", "partitions", "actor", "problem")
ZONES = columns("name", "takes_new")
CLIENTS = columns("client", "client_name")
EVENTS = columns("time", "kind", "subject", "object", "actor", "detail")

Bandwidth = typer.Option("--bandwidth", help="MiB/s, for each direction.")
Storage = typer.Option("--storage", help="GiB, all replicas together.")
Partitions = typer.Option("--partitions", help="Replicas included.")
Client = Literal[
    "python", "kafka-python", "aiokafka", "java", "spring", "tools", "kcat", "node", "franz-go", "sarama"
]  # fmt: skip
AMOUNT = "A number; null is unlimited."


@app.add("list")
def listed(
    ctx: typer.Context,
    state: Annotated[
        Literal["creating", "running", "failed", "isolated", "restoring", "deleting"] | None,
        typer.Option(help="By default all."),
    ] = None,
    health: Annotated[
        Literal["healthy", "degraded", "critical"] | None,
        typer.Option(help="Only those that were so when they were looked at last."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Only those that are called so, whole.")] = None,
    prefix: Prefix = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Instances of the organisation, oldest first unless --sort says otherwise."""
    query = said(state=state, health=health, name=name, prefix=prefix, sort=sort)
    of(ctx).listed(ops.INSTANCES, LISTED, limit=limit, query=query)


@app.add("names")
def names(ctx: typer.Context, limit: Limit = None) -> None:
    """Names and ids of the instances that your key or your role is for, whatever else it shows of them."""
    of(ctx).listed(ops.INSTANCE_NAMES, NAMED, limit=limit)


@app.add("show")
def shown(ctx: typer.Context, instance: Instance) -> None:
    """One instance with its addresses, health, settings and use."""
    of(ctx).show(ops.INSTANCE, instance_id=instance)


@app.add("metrics")
def metrics(ctx: typer.Context, instance: Instance) -> None:
    """Its newest figures and the lag of its groups, as Prometheus reads them."""
    of(ctx).text(ops.INSTANCE_PROMETHEUS, instance_id=instance)


@app.add("scrape-config")
def scrape_config(
    ctx: typer.Context,
    instance: Instance,
    by: Annotated[
        Literal["key", "certificate"] | None, typer.Option(help="What that Prometheus shows. By default an API key.")
    ] = None,
) -> None:
    """What to paste into the configuration of a Prometheus that is to read its figures. What it shows is in files beside it."""
    of(ctx).text(ops.INSTANCE_SCRAPE_CONFIG, query=said(by=by), instance_id=instance)


@app.add("snippet")
def snippet(
    ctx: typer.Context,
    instance: Instance,
    client: Annotated[Client | None, typer.Option(help="By default the clients that there are.")] = None,
    topic: Annotated[str | None, typer.Option(help="That the programs name. By default the first by name.")] = None,
    route: Annotated[str | None, typer.Option(help="By which route, such as r2. By default the oldest.")] = None,
    mechanism: Annotated[str | None, typer.Option(help="By which the programs log in, such as SCRAM-SHA-256.")] = None,
    file: Annotated[str | None, typer.Option(help="This file alone, of a client that has several.")] = None,
) -> None:
    """What to paste into a client: programs that write and read, with the addresses and the security of a route."""
    if file is not None and client is None:
        raise Misused("say --client with --file: each has other files")
    session = of(ctx)
    query = said(client=client, topic=topic, route=route, mechanism=mechanism)
    found = session.call(ops.INSTANCE_SNIPPETS, query=query, instance_id=instance)
    if client is None or session.output.is_json:
        session.output.pages([found], CLIENTS)
        return
    files = found["snippet"]["files"]
    chosen = [each for each in files if file in (None, each["file"])]
    if not chosen:
        raise Missing(f"there is no file {plain(file)}: {', '.join(each['file'] for each in files)}")
    heads = (f"==> {each['file']} <==\n" if len(chosen) > 1 else "" for each in chosen)
    session.output.text("\n\n".join(head + each["content"] for head, each in zip(heads, chosen, strict=True)))
    session.output.note(f"Run it: {'; '.join(found['snippet']['run'])}")


@app.add("history")
def history(
    ctx: typer.Context,
    instance: Instance,
    start: Since = "-1h",
    end: Until = None,
    step: Annotated[int | None, typer.Option(min=10, help="Seconds; by default as few as make 1,000 lines.")] = None,
    metrics: Annotated[
        str | None,
        typer.Option(help="Names with commas between, such as produce_bytes_per_s,connections; by default all."),
    ] = None,
) -> None:
    """What flowed, waited, was stored and connected: 10 s for an hour, a minute for 15 days, an hour for 400 days.

    Of the last hour also how far behind its groups are, in records, bytes and seconds: the largest of any.
    """
    now = datetime.now(UTC)
    query = said(
        **{"from": since(start, now), "to": end and since(end, now), "step": step, "metrics": metrics},
    )
    session = of(ctx)
    found = session.call(ops.INSTANCE_HISTORY, query=query, instance_id=instance)
    names = [metric["name"] for metric in found["metrics"]]
    session.output.pages([found], columns("time", *names), readable=_unlimited(found.get("gaps")))
    meaning = "not known" if "gaps" in found else "a gap, or no limit"
    session.output.note(f"Steps of {found['step_s']} s, of rows of {found['resolution_s']} s; a dash is {meaning}.")
    if not found.get("is_complete", True):
        session.output.note(INCOMPLETE)


def _unlimited(gaps: Sequence[Mapping[str, str]] | None) -> Callable[[Mapping[str, Any]], Mapping[str, Any]] | None:
    """Says of a limit that is null outside of a gap that there is none, and of what is allocated then as well.

    None: the service is of an earlier release, and does not tell one from the other.
    """
    if gaps is None:
        return None
    spans = [(datetime.fromisoformat(each["start"]), datetime.fromisoformat(each["end"])) for each in gaps]

    def readable(item: Mapping[str, Any]) -> Mapping[str, Any]:
        time = datetime.fromisoformat(item["time"])
        if any(start <= time < end for start, end in spans):
            return item
        found = dict(item)
        for direction in ("produce", "consume"):
            limit, allocated = (f"{direction}_{name}_bytes_per_s" for name in ("limit", "allocated"))
            if item.get(limit, 0) is None:
                found |= {name: "unlimited" for name in (limit, allocated) if item.get(name, 0) is None}
        return found

    return readable


@app.add("broker-history")
def broker_history(
    ctx: typer.Context,
    instance: Instance,
    broker: Annotated[int, typer.Argument(help="Its number.", min=0)],
    start: Since = "-1h",
    end: Until = None,
    step: Annotated[int | None, typer.Option(min=10, help="Seconds; by default as few as make 1,000 lines.")] = None,
) -> None:
    """What the instance asked of one of its brokers: flow, requests, errors and latencies."""
    now = datetime.now(UTC)
    query = said(**{"from": since(start, now), "to": end and since(end, now), "step": step})
    session = of(ctx)
    found = session.call(ops.INSTANCE_BROKER_HISTORY, query=query, instance_id=instance, broker=str(broker))
    session.output.pages([found], columns("time", *(metric["name"] for metric in found["metrics"])))
    session.output.note(f"Steps of {found['step_s']} s, of rows of {found['resolution_s']} s; a dash is a gap.")
    if not found.get("is_complete", True):
        session.output.note(INCOMPLETE)


@app.add("requests")
def requests(
    ctx: typer.Context,
    instance: Instance,
    start: Since = "-1h",
    end: Until = None,
    step: Annotated[int | None, typer.Option(min=10, help="Seconds, of the steps that JSON has.")] = None,
    phase: Annotated[
        Literal["total", "local", "remote", "throttle"],
        typer.Option(help="Which time is shown, as Kafka's TotalTimeMs and the others. JSON has all of them."),
    ] = "total",
) -> None:
    """Requests by API: how many, with which errors, and in how many milliseconds half, 99 % and 99.9 % were answered."""
    now = datetime.now(UTC)
    session = of(ctx)
    query = said(**{"from": since(start, now), "to": end and since(end, now), "step": step})
    found = session.call(ops.INSTANCE_REQUESTS, query=query, instance_id=instance)
    times = {f"{name}_ms": f"latency_ms.{phase}.{name}" for name in ("p50", "p99", "p999")}
    session.output.pages([found], columns("api", "requests", "requests_per_s", "errors", "error_codes", **times))
    if not found.get("is_complete", True):
        session.output.note(INCOMPLETE)


@app.add("zones")
def zones(ctx: typer.Context) -> None:
    """Zones that a new instance can be wished into; none where this service tells of none."""
    session = of(ctx)
    session.output.pages([session.call(ops.ZONES)], ZONES)


@app.add("create", rehearses=True)
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    bandwidth: Annotated[float, Bandwidth],
    storage: Annotated[float, Storage],
    partitions: Annotated[int, Partitions],
    cidrs: Cidrs = None,
    deletion_protection: Annotated[
        bool | None, typer.Option("--deletion-protection", help="Nobody deletes it until that is switched off.")
    ] = None,
    prepaid_months: Annotated[
        int | None,
        typer.Option(min=1, max=36, help="So many months are paid in advance; by default it is paid by the hour."),
    ] = None,
    prepaid_at_end: Annotated[
        Literal["expire", "renew", "postpaid"] | None,
        typer.Option(help="When they have ended: isolate it, renew it, or go on by the hour."),
    ] = None,
    zones: Annotated[
        list[str] | None, typer.Option("--zone", help="Its cluster has brokers there; again for more: in each of them.")
    ] = None,
    apart_from: Annotated[
        list[str] | None,
        typer.Option("--apart-from", help="An instance whose cluster it must not share; again for more."),
    ] = None,
    confirm_price: ConfirmPrice = None,
    wait: Wait = True,
) -> None:
    """Buy an instance, and wait until it can be used. Without --cidr nobody may connect yet."""
    session = of(ctx)
    body = said(
        name=name,
        bandwidth_mib_per_s=bandwidth,
        storage_gib=storage,
        partitions=partitions,
        whitelist=cidrs or [],
        deletion_protection=deletion_protection,
        prepaid_months=prepaid_months,
        prepaid_at_end=prepaid_at_end,
        placement=said(zones=zones or None, apart_from=[session.instance_id(each) for each in apart_from or ()] or None)
        or None,
        confirm_price=confirm_price,
    )
    answer = session.start(ops.INSTANCE_CREATE, wait=wait, body=body)
    if wait:
        session.output.note(f"Ready: sluice instance show {answer['id']}")


@app.add("resize", rehearses=True)
def resize(
    ctx: typer.Context,
    instance: Instance,
    bandwidth: Annotated[float | None, Bandwidth] = None,
    storage: Annotated[float | None, Storage] = None,
    partitions: Annotated[int | None, Partitions] = None,
    accept_full_storage: Annotated[
        bool | None,
        typer.Option("--accept-full-storage", help="Less storage than is used is meant: producing is refused then."),
    ] = None,
    confirm_price: ConfirmPrice = None,
    at: Annotated[
        str | None, typer.Option(help="Later: RFC 3339, such as 2026-12-24T03:00:00Z, within 30 days.")
    ] = None,
    in_window: Annotated[
        bool, typer.Option("--in-window", help="Later: when the maintenance window opens next.")
    ] = False,
    wait: Wait = True,
) -> None:
    """Other sizes; what is not named stays. With --at or --in-window later: `instance scheduled` lists the change."""
    sizes = said(bandwidth_mib_per_s=bandwidth, storage_gib=storage, partitions=partitions)
    if not sizes:
        raise Misused("name --bandwidth, --storage or --partitions")
    words = said(accept_full_storage=accept_full_storage, confirm_price=confirm_price)
    if at is not None and in_window:
        raise Misused("take --at or --in-window")
    if at is not None or in_window:
        body = {**({"in_next_window": True} if in_window else {"at": at}), **sizes, **words}
        of(ctx).change(ops.SCHEDULED_CHANGE_CREATE, body=body, instance_id=instance)
        return
    of(ctx).start(ops.INSTANCE_CHANGE, wait=wait, body={**sizes, **words}, instance_id=instance)


@app.add("scheduled")
def scheduled(
    ctx: typer.Context,
    instance: Instance,
    change: Annotated[str | None, typer.Argument(metavar="[CHANGE]", help="Show this one.")] = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Changes that are made later, and what became of earlier ones; the newest first unless --sort says otherwise."""
    if change is None:
        of(ctx).listed(ops.SCHEDULED_CHANGES, SCHEDULED, limit=limit, query=said(sort=sort), instance_id=instance)
    else:
        of(ctx).show(ops.SCHEDULED_CHANGE, instance_id=instance, change_id=change)


@app.add("unschedule", rehearses=True)
def unschedule(
    ctx: typer.Context,
    instance: Instance,
    change: Annotated[str, typer.Argument(metavar="CHANGE", help="Its id: sluice instance scheduled.")],
) -> None:
    """Cancel a change that waits for its time."""
    of(ctx).change(ops.SCHEDULED_CHANGE_CANCEL, done=f"{change} is cancelled.", instance_id=instance, change_id=change)


@app.add("rename", rehearses=True)
def rename(
    ctx: typer.Context,
    instance: Instance,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    wait: Wait = True,
) -> None:
    """Another name; its id and addresses stay."""
    of(ctx).start(ops.INSTANCE_CHANGE, wait=wait, body={"name": name}, instance_id=instance)


@app.add("protect", rehearses=True)
def protect(
    ctx: typer.Context,
    instance: Instance,
    on: Annotated[bool, typer.Option("--on/--off", help="On by default.")] = True,
    wait: Wait = True,
) -> None:
    """Deletion protection: while it is on, nobody deletes the instance."""
    body = {"deletion_protection": on}
    of(ctx).start(ops.INSTANCE_CHANGE, wait=wait, body=body, instance_id=instance)


@app.add("window", rehearses=True)
def window(
    ctx: typer.Context,
    instance: Instance,
    day: Annotated[
        Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"] | None,
        typer.Option(help="Each week on this day."),
    ] = None,
    hour: Annotated[int | None, typer.Option(min=0, max=23, help="Its beginning, in UTC.")] = None,
    length: Annotated[int, typer.Option(min=1, max=24, help="Hours.")] = 2,
    none: Annotated[bool, typer.Option("--none", help="It has no window any more.")] = False,
    wait: Wait = True,
) -> None:
    """The maintenance window: when what disturbs clients may happen. Without options: how it is."""
    session = of(ctx)
    if none and (day is not None or hour is not None):
        raise Misused("take --day and --hour, or --none")
    if (day is None) != (hour is None):
        raise Misused("name both --day and --hour")
    if day is None and not none:
        session.output.document(
            {"maintenance_window": session.call(ops.INSTANCE, instance_id=instance)["maintenance_window"]}
        )
        return
    wanted = None if none else {"day": day, "hour_utc": hour, "length_hours": length}
    body = {"maintenance_window": wanted}
    session.start(ops.INSTANCE_CHANGE, wait=wait, body=body, instance_id=instance)


@app.add("config", rehearses=True)
def config(
    ctx: typer.Context,
    instance: Instance,
    auto_create_topics: Annotated[
        bool | None, typer.Option(help="Whether a topic comes into being when a client names it.")
    ] = None,
    default_partitions: Annotated[int | None, typer.Option(help="Of a topic that does not say.")] = None,
    default_replication_factor: Annotated[int | None, typer.Option(help="The same.")] = None,
    max_message_bytes: Annotated[
        int | None, typer.Option(help="The largest batch of a topic that does not say.")
    ] = None,
    allow_everyone_if_no_acl_found: Annotated[
        bool | None, typer.Option(help="Who may use what has no ACL: everyone, or super users alone.")
    ] = None,
    super_users: Annotated[
        list[str] | None, typer.Option("--super-user", help="User:NAME, who may do everything; again for more.")
    ] = None,
    no_super_users: Annotated[bool, typer.Option("--no-super-users", help="Nobody.")] = False,
    audit: Annotated[
        bool | None, typer.Option(help="Whether brokers write what happens to the topic __sluice_audit.")
    ] = None,
    wait: Wait = True,
) -> None:
    """Settings for topics that do not say, for ACLs and the audit. Without options: how they are."""
    session = of(ctx)
    wanted = said(
        auto_create_topics=auto_create_topics,
        default_partitions=default_partitions,
        default_replication_factor=default_replication_factor,
        max_message_bytes=max_message_bytes,
        allow_everyone_if_no_acl_found=allow_everyone_if_no_acl_found,
        super_users=[] if no_super_users else super_users,
        audit=audit,
    )
    if not wanted:
        session.output.document(session.call(ops.INSTANCE, instance_id=instance)["config"])
        return
    session.start(ops.INSTANCE_CHANGE, wait=wait, body={"config": wanted}, instance_id=instance)


@app.add("delete", rehearses=True)
def delete(
    ctx: typer.Context,
    instance: Instance,
    at_once: Annotated[
        bool, typer.Option("--at-once", help="Without a grace period: its data are deleted for good. Owners do that.")
    ] = False,
    yes: Yes = False,
    wait: Wait = True,
) -> None:
    """Delete an instance: nobody gets in, and until its grace period ends it can be restored. Then its data are deleted."""
    session = of(ctx)
    found = session.instance_id(instance)
    name = "" if (session.dry_run or yes) and not at_once else session.call(ops.INSTANCE, instance_id=found)["name"]
    later = " at once, for good" if at_once else ", after the service's grace period if it has one"
    session.confirm(
        f"This deletes the instance {name} ({found}) with all its topics and records{later}.", name, yes=yes
    )
    if at_once:
        session.start(ops.INSTANCE_DESTROY, wait=wait, body={"name": name}, instance_id=found)
        return
    session.start(ops.INSTANCE_DELETE, wait=wait, instance_id=found)
    if wait:
        _say_until_when(session, found)


def _say_until_when(session: Session, instance: str) -> None:
    try:
        ends = session.call(ops.INSTANCE, instance_id=instance)["destroys_at"]
    except Missing:
        return  # the service has no grace period
    session.output.note(f"It can be restored until {ends}: sluice instance restore {instance}")


@app.add("restore", rehearses=True)
def restore(ctx: typer.Context, instance: Instance, wait: Wait = True) -> None:
    """Open an isolated instance again, with its data, settings and addresses."""
    of(ctx).start(ops.INSTANCE_RESTORE, wait=wait, instance_id=instance)


@app.add("whitelist", rehearses=True)
def whitelist(
    ctx: typer.Context,
    instance: Instance,
    cidrs: Cidrs = None,
    add: Annotated[list[str] | None, typer.Option(help="Beside those that are there; again for more.")] = None,
    remove: Annotated[list[str] | None, typer.Option(help="Of those that are there; again for more.")] = None,
    add_mine: Annotated[
        bool, typer.Option("--add-mine", help="Beside those that are there, the address at which the service sees you.")
    ] = False,
    nobody: Annotated[bool, typer.Option("--nobody", help="Let nobody in.")] = False,
) -> None:
    """Who may connect: all of them by --cidr, or some more or fewer; in force within 2 s. Without options: who may now."""
    session = of(ctx)
    changes = bool(add or remove or add_mine)
    if sum((bool(cidrs), changes, nobody)) > 1:
        raise Misused("take --cidr, or --add, --add-mine and --remove, or --nobody")
    if add_mine:
        add = [*(add or ()), _own_address(session)]
    if cidrs or nobody:
        session.change(ops.INSTANCE_WHITELIST, body={"cidrs": cidrs or []}, instance_id=instance)
    elif changes:  # by the service, so that what somebody else adds meanwhile stays
        session.change(ops.INSTANCE_WHITELIST_CHANGE, body=said(add=add, remove=remove), instance_id=instance)
    else:
        session.output.document({"whitelist": session.call(ops.INSTANCE, instance_id=instance)["whitelist"]})


def _own_address(session: Session) -> str:
    found: str | None = session.call(ops.ME)["address"]
    if found is None:
        raise Misused("the service does not see your address: name it with --add")
    return found


@app.add("limits", rehearses=True)
def limits(
    ctx: typer.Context,
    instance: Instance,
    topics: Annotated[str | None, typer.Option(help=AMOUNT)] = None,
    requests_per_s: Annotated[str | None, typer.Option(help=AMOUNT)] = None,
    broker_time_ms_per_s: Annotated[str | None, typer.Option(help=AMOUNT)] = None,
    open_transactions: Annotated[str | None, typer.Option(help=AMOUNT)] = None,
    transactional_ids: Annotated[str | None, typer.Option(help=AMOUNT)] = None,
    transaction_timeout_ms: Annotated[str | None, typer.Option(help=AMOUNT)] = None,
    wait: Wait = True,
) -> None:
    """Limits that no plan sells. Operators of the service set them, all at once: what is left out gets its default."""
    session = of(ctx)
    wanted = whole_or_null(
        topics=topics,
        requests_per_s=requests_per_s,
        broker_time_ms_per_s=broker_time_ms_per_s,
        open_transactions=open_transactions,
        transactional_ids=transactional_ids,
        transaction_timeout_ms=transaction_timeout_ms,
    )
    if not wanted:
        session.output.document(session.call(ops.INSTANCE, instance_id=instance)["limits"])
        return
    session.start(ops.INSTANCE_LIMITS, wait=wait, body=wanted, instance_id=instance)


@app.add("ca")
def authority(ctx: typer.Context, instance: Instance) -> None:
    """The instance's own authority, PEM: sluice instance ca INSTANCE > ca.pem."""
    of(ctx).text(ops.INSTANCE_CA, instance_id=instance)


@app.add("events")
def events(
    ctx: typer.Context,
    instance: Instance,
    start: Annotated[
        str | None, typer.Option("--from", help="Ago, such as -6h; or a date or RFC 3339, in UTC.")
    ] = None,
    end: Until = None,
    kinds: Annotated[
        str | None,
        typer.Option(help="Names with commas between, such as instance.resized,alarm.fired; by default all."),
    ] = None,
    limit: Limit = None,
) -> None:
    """What happened in the last 90 days, the newest first: health, operations, alarms, resizes, throttling, brokers."""
    now = datetime.now(UTC)
    query = said(**{"from": start and since(start, now), "to": end and since(end, now), "kinds": kinds})
    of(ctx).listed(ops.EVENTS, EVENTS, limit=limit, query=query, instance_id=instance)
