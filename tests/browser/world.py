"""A console to click through: Django's own server, a worker in a thread, and a cluster that is faked.

``python -m tests.browser.world DIRECTORY`` serves on a free port, writes it to DIRECTORY/port, and goes on until it is
stopped. The database is a file in DIRECTORY. Brokers, topics and the flow master are the fakes of tests/controlplane;
operations are carried out by the real code. Files in DIRECTORY are switches for a test:

    cluster-away   nothing of the cluster answers        brokers-slow   brokers apply nothing
    storage-full   as many bytes are stored as the limit was when it was switched on: a larger one has room again
    broker-away   broker 2 has stopped
    passkeys   the service is called localhost, where browsers make passkeys
    consumers-stopped   the group `billing` has no members    letters   the service writes to people
    provider   an OpenID provider on loopback may be asked, whose address is in world.json

Receivers of alarms are real, on loopback: what they have taken stands in DIRECTORY/taken.json, with the webhooks' address.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
import traceback
from dataclasses import replace
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from tests.controlplane.sso.provider import Provider
from tests.support.smtp import MailServer
from tests.support.webhooks import WebhookServer

from .pages import EMPTY_ORGANISATION, HANGS_AT, ORGANISATION_BEING_DELETED

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from controlplane.billing.pricing.rating import Month

PASSWORD = "water over the wheel"
ORGANISATION = "Harbour Authority"
MIB = 2**20
UNSEEN_S = 15
"""Pages come again sooner, also on a slow machine; the worker looks at groups once a minute, for as long as all tests take."""


def flows(limit: int, moment: float, seed: int) -> list[dict[str, Any]]:
    """Three brokers whose traffic comes and goes, each with what it may carry."""
    shown = []
    for broker, (weight, pace) in enumerate(((0.44, 7.0), (0.22, 11.0), (0.08, 5.0)), start=1):
        swing = 0.8 + 0.2 * math.sin(moment / pace + seed % 7 + broker)
        flow = int(limit * weight * swing)
        allocation = int(limit * (weight + 0.12))
        shown.append(
            {
                "broker": broker,
                "leaders": 4 - broker,
                "initial_share": limit // 3,
                "flow": flow,
                "allocation": allocation,
                "branch": "headroom",
                "explanation": f"broker {broker} carries {round(100 * weight / 0.74)} % of the traffic "
                f"({4 - broker} of 6 leaders) and may carry {allocation / MIB:.2f} MiB/s",
            }
        )
    return shown


def one_at_a_time(thing: Any, lock: AbstractContextManager[Any]) -> None:
    """Fakes are for one thread; here pages and the worker ask at once: each call of `thing` has the lock for its time."""

    def alone(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            with lock:
                return call(*arguments, **options)

        return called

    for name in dir(thing):
        if not name.startswith("_") and callable(call := getattr(thing, name)):
            setattr(thing, name, alone(call))


MISSING = {"replicas_behind": 21, "partitions_without_leader": 1, "group_partitions_without_coordinator": 2}


class World:
    """The fakes, switched by files."""

    def __init__(self, directory: Path, mail: MailServer, hook: WebhookServer, provider: Provider) -> None:
        from tests.controlplane.fakes import FakeAdmin, FakeBrokers, FakeTree

        self.directory = directory
        self.mail, self.hook, self.provider = mail, hook, provider
        self._lock = threading.RLock()
        self.tree = FakeTree()
        self.brokers = FakeBrokers(self.tree)
        one_at_a_time(self.brokers, self._lock)
        self.tree.after_write = self.brokers.apply
        one_at_a_time(self.tree, self._lock)
        self.admin = FakeAdmin(self.tree)
        self.read_at = time.time()
        self.url = ""
        self._full_at: dict[str, int] = {}  # what storage held when the switch was set, in bytes, by instance

    def switched(self, name: str) -> bool:
        return (self.directory / name).exists()

    def enter(self, thing: Any) -> Any:
        """Hand out a fake in the state that the switches say."""
        with self._lock:
            self._switch()
        return thing

    def _switch(self) -> None:
        self.tree.away = self.admin.away = self.switched("cluster-away")
        if self.switched("broker-away") != (2 not in self.brokers.served):
            self.brokers.kill(2) if 2 in self.brokers.served else self.brokers.start(2)
        slow = self.switched("brokers-slow")
        if bool(self.brokers.paused) and not slow:
            self.brokers.paused = set()
            self.brokers.apply()
        self.brokers.paused = {1, 2, 3} if slow else set()

    def read_on(self, groups: Any) -> Any:
        """The group `billing` reads 20 records a second of partition 0, while it has its members and somebody looks."""
        now = time.time()
        for name, group in groups.found.items():
            if not name.endswith(".billing"):
                continue
            group.members[:] = [] if self.switched("consumers-stopped") else MEMBERS
            place = (name.replace(".billing", ".orders"), 0)
            if group.members and now > self.read_at:
                start, records = groups.logs[place]
                passed_s = now - self.read_at
                read = int(20 * passed_s) if passed_s < UNSEEN_S else 20  # while nobody looks, it hardly goes on
                group.offsets[place] = min(start + len(records), group.offsets[place] + read)
            self.read_at = now
        return groups

    def _stored(self, instance_id: str, limit: int) -> int:
        """Bytes. Full is as much as the limit was then: who enlarges the storage has room, with the switch still on."""
        if not self.switched("storage-full"):
            self._full_at.pop(instance_id, None)
            return limit * 37 // 100
        return self._full_at.setdefault(instance_id, limit)

    def allocation(self, _cluster: object, instance_id: str) -> dict[str, Any]:
        from controlplane.core.errors import MasterUnavailable
        from quota.contracts.instance import InstanceSpec

        if self.switched("cluster-away"):
            raise MasterUnavailable("no flow master is active")
        node = self.tree.nodes.get(f"/sluice/instances/{instance_id}")
        if node is None:
            raise MasterUnavailable("no broker has reported on this instance yet", code="allocation_unknown")
        limits = InstanceSpec.from_json(node[0]).limits
        stored = self._stored(instance_id, limits.storage_bytes)
        full = stored >= limits.storage_bytes
        document: dict[str, Any] = {
            "storage_used_bytes": stored,
            "storage_full": full,
            "partitions_without_leader": 0,
            "partitions_under_replicated": 6 if full else 0,
            "connections": 42,
        }
        for direction, limit in (("produce", limits.produce_bytes_per_s), ("consume", limits.consume_bytes_per_s)):
            brokers = flows(limit, time.time(), sum(map(ord, instance_id + direction)))
            total = sum(broker["flow"] for broker in brokers)
            document[direction] = {"limit": limit, "branch": "headroom", "flow": total, "brokers": brokers}
        return document

    def short(self, cluster: object, instance_ids: list[str]) -> list[dict[str, Any]]:
        from controlplane.core.errors import MasterUnavailable

        found = []
        for instance_id in instance_ids:
            try:
                found.append({"instance": instance_id, **self.allocation(cluster, instance_id)})
            except MasterUnavailable as error:
                if error.code != "allocation_unknown":
                    raise
        return found

    def allocations(self, cluster: object, instance_ids: list[str]) -> list[dict[str, Any]]:
        return self.short(cluster, instance_ids)

    def broker_rows(self, _cluster: object) -> list[dict[str, Any]]:
        from controlplane.core.errors import MasterUnavailable

        if self.switched("cluster-away"):
            raise MasterUnavailable("no flow master is active")
        gone = self.switched("broker-away")
        both = [flows(40 * MIB, time.time(), seed) for seed in (1, 2)]
        return [
            {
                "broker": produce["broker"],
                "reporting": not (gone and produce["broker"] == 2),
                **({"missing": MISSING} if gone and produce["broker"] == 2 else {}),
                "instances": 3,
                "leaders": 14 - 3 * produce["broker"],
                "produce": {name: produce[name] for name in ("flow", "allocation")},
                "consume": {name: consume[name] for name in ("flow", "allocation")},
            }
            for produce, consume in zip(*both, strict=True)
        ]

    def tell_taken(self) -> None:
        mails = [(each["To"], each["Subject"], each.get_content()) for each in self.mail.mails]
        document = {"hook": self.hook.url, "mails": mails, "hooks": [each.document for each in self.hook.taken]}
        partial = self.directory / "taken.part"
        partial.write_text(json.dumps(document))
        partial.rename(self.directory / "taken.json")

    def write_letters(self) -> None:
        """Links need the address of the console, without which the service writes to nobody."""
        from django.conf import settings

        with self._lock:  # pages and the worker ask at once: who has looked at the switches first also says so first
            url = self.url if self.switched("letters") else ""
            if self.switched("passkeys"):  # which browsers bind to names, and not to IP addresses
                url = self.url.replace("127.0.0.1", "localhost")
            wanted = {"console_url": url, "token_issuer_hosts": self.provider.url if self.switched("provider") else ""}
            if any(getattr(settings.ENVIRONMENT, name) != value for name, value in wanted.items()):
                settings.ENVIRONMENT = replace(settings.ENVIRONMENT, **wanted)

    def before(self, application: Callable[..., Any]) -> Callable[..., Any]:
        """The application, to which each switch is set as it is when a page is asked for: no story waits for the worker."""

        def answered(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
            self.write_letters()
            return application(environ, start_response)

        return answered

    def work(self) -> None:
        """Be beat and the worker."""
        from django.db import connection

        from controlplane.accounts.identity import signing_up
        from controlplane.accounts.identity.door import notes_answer
        from controlplane.alarms.delivery.outbox import send_due
        from controlplane.alarms.evaluation import evaluate
        from controlplane.core import operations
        from controlplane.health.services import health_observe
        from controlplane.history.lag.sampling import sample as lag_sample
        from controlplane.history.services import sample
        from controlplane.mail import outbox
        from controlplane.quotas.figures import figures_keep

        def run_operations() -> None:
            for operation_id in list(operations.runnable().values_list("pk", flat=True)):
                operations.run(operation_id)

        known = (health_observe, figures_keep, sample, lag_sample, evaluate, send_due, self.write_letters, notes_answer)
        while True:
            mails = (signing_up.answer, outbox.send_due, self.tell_taken)
            for task in (lambda: self.enter(None), *known, *mails, run_operations):
                try:
                    task()
                except Exception:  # noqa: BLE001  # a task that fails is told of, and comes again, as Celery has it
                    traceback.print_exc()
            connection.close()
            time.sleep(0.3)


def prepare(world: World) -> None:
    """People, an organisation with two instances and one that is isolated, a few topics."""
    from datetime import UTC, datetime, timedelta

    from controlplane.access import acls, users
    from controlplane.accounts import service_accounts
    from controlplane.accounts import services as accounts
    from controlplane.accounts.identity.links import link_make
    from controlplane.accounts.models import LinkPurpose, MailedLink, User
    from controlplane.admission import scheduling
    from controlplane.core import operations
    from controlplane.instances import lifecycle
    from controlplane.instances import services as instances
    from controlplane.schemas import services as schemas
    from controlplane.schemas.decoding import Format, Part, Schema
    from controlplane.tenants import invitations
    from controlplane.tenants import services as tenants
    from controlplane.tenants.models import Organisation, Role
    from controlplane.throttle_rules.services import throttle_rule_create
    from controlplane.topics import services as topics
    from tests.controlplane.identity.rows import sign_up_row
    from tests.controlplane.rows import custom_role_row, service_account_row

    now = datetime.now(UTC)
    people = {
        name: User.objects.create_user(f"{name.lower()}@example.com", PASSWORD, name=f"{name} Example")
        for name in ("Alice", "Bob", "Charlie")
    }
    accounts.admin_ensure(email="admin@example.com", password=PASSWORD)
    harbour = tenants.organisation_create(name=ORGANISATION, owner=people["Alice"])
    tenants.organisation_create(name="Orchard Cooperative", owner=people["Alice"])
    for key, name, marked in ((EMPTY_ORGANISATION, "Quiet Barn", None), (ORGANISATION_BEING_DELETED, "Old Mill", now)):
        beside = Organisation(id=key, name=name, created_at=now, deletion_asked_at=marked)
        beside.deletes_at = None if marked is None else marked + timedelta(days=7)
        beside.save(force_insert=True)
        tenants.membership_set(organisation=beside, user=people["Alice"], role=Role.OWNER)
    tenants.organisation_create(name="Charlie's", owner=people["Charlie"])
    tenants.membership_set(organisation=harbour, user=people["Bob"], role=Role.MEMBER)
    made = []
    for name, bandwidth, storage in (("clickstream", 40, 500), ("orders", 20, 100), ("archive", 1, 10)):
        instance, operation = instances.instance_create(
            organisation=harbour,
            actor="alice@example.com",
            name=name,
            bandwidth_mib_per_s=bandwidth,
            storage_gib=storage,
            partitions=300,
            whitelist=["10.20.0.0/16", "127.0.0.1/32"],
        )
        operations.run(operation.id)
        made.append(instance)
    shut = made.pop()
    operations.run(lifecycle.instance_delete(organisation=harbour, actor="alice@example.com", instance_id=shut.id).id)
    for name, partitions in (("orders", 6), ("payments", 3), ("shipments.v2", 12)):
        topics.topic_create(
            organisation=harbour,
            actor="alice@example.com",
            instance_id=made[1].id,
            name=name,
            partitions=partitions,
            config={"retention.ms": "604800000"},
        )
    topics.topic_note_set(
        organisation=harbour,
        actor="alice@example.com",
        instance_id=made[1].id,
        name="orders",
        note="Every order as the shop takes it.\n\nAsk the billing team before changing anything here.",
        tags=["billing", "production"],
    )
    schemas.schema_set(
        organisation=harbour,
        actor="alice@example.com",
        instance_id=made[1].id,
        topic="orders",
        part=Part.VALUE,
        schema=Schema(Format.AVRO, '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}'),
    )
    accounts.api_key_create(organisation=harbour, user=people["Bob"], name="deploy pipeline")
    custom_role_row(harbour, "rol-000000000001")
    deployer = service_account_row(harbour, "svc-000000000001")
    service_accounts.service_account_key_create(
        organisation=harbour, by=people["Alice"], service_account_id=deployer.id, name="ci", scopes=["topics"]
    )
    accounts.api_key_create(
        organisation=harbour,
        user=people["Alice"],
        name="metrics",
        scopes=["read"],
        instances=[made[1].id],
        addresses=["203.0.113.0/24"],
        expires_at=datetime.now(UTC) + timedelta(days=5),
    )
    place = {"organisation": harbour, "actor": "alice@example.com", "instance_id": made[1].id}
    users.user_create(**place, name="billing")
    users.user_create(**place, name="web-shop", mechanisms=["SCRAM-SHA-512"])
    users.user_password_set(**place, name="billing", keep_previous_s=86_400)
    acls.acls_preset(**place, preset="producer", principal="User:web-shop", topic="orders")
    acls.acls_preset(
        **place, preset="consumer", principal="User:billing", topic="orders", group="billing", host="10.20.0.0/16"
    )
    sizes = {"bandwidth_mib_per_s": 40, "partitions": 600}
    scheduling.change_schedule(**place, at=datetime.now(UTC) + timedelta(days=3), changes=sizes)
    month = use(made[1].id)
    wait(made[1].id)
    remember(made[1].id)
    report(made)
    consume(world, made[1].id)
    connect(world, made[1].id)
    audit(world, made[1].id)
    speak(world, made[1].id)
    propose(world, place)
    watch(made[1])
    spend(made[1])
    fill_up(made[1])
    load(made[1])
    rebalance(made[1])
    rule = throttle_rule_create(**place, kind="client", users=["web-shop"], clients=[None], produce_mib_per_s=2.5)
    _, token = invitations.invitation_create(
        organisation=harbour, inviter=people["Alice"], email="dora@example.com", role=Role.VIEWER
    )
    document = {
        "organisation": harbour.id,
        "instances": {each.name: each.id for each in [*made, shut]},
        "invitation": f"/invitations/{token}",
        "sign_up": f"/sign-up/{sign_up_row('nora@example.com')}",
        "rule": rule.id,
        "month": str(month),
        "provider": world.provider.url,
        "operation": operation.id,
        "links": {
            purpose: link_make(user=people["Alice"], purpose=purpose, address="alice@example.com", now=now)
            for purpose in (LinkPurpose.CHANGE, LinkPurpose.RESET, LinkPurpose.BROWSER)
        },
    }
    MailedLink.objects.update(expires_at=now + timedelta(days=7))  # their pages are looked at after an hour as well
    (world.directory / "world.json").write_text(json.dumps(document))


def rebalance(instance: Any) -> None:
    """How evenly the cluster is loaded, now and over a day; a proposal, and one that is under way."""
    from controlplane.rebalancing import kept
    from tests.controlplane.rebalancing.rows import rebalance_row

    kept.look()
    warm(instance.cluster)
    rebalance_row(instance.cluster, instance=instance.id)
    rebalance_row(instance.cluster, "reb-000000000002", state="running", instance=instance.id, moves=60)


def warm(cluster: Any) -> None:
    """Samples of three brokers over a day: the first leads most, the second had replicas behind, and an hour is not known."""
    from controlplane.fleet.models import BrokerSample

    def sampled(broker: int, at: int) -> BrokerSample:
        day = 0.55 + 0.35 * math.sin(2 * math.pi * (at % 86_400) / 86_400) + 0.1 * math.sin(at / 700 + broker)
        flow = int(40 * MIB * day / broker)
        return BrokerSample(
            cluster=cluster.pk,
            broker=broker,
            at=at,
            reporting=True,
            leaders=14 - 3 * broker,
            instances=3,
            produce_bytes_per_s=flow,
            produce_allocated_bytes_per_s=int(flow * (1 + 0.2 * broker)),
            consume_bytes_per_s=2 * flow,
            consume_allocated_bytes_per_s=int(2 * flow * (1 + 0.2 * broker)),
            loop_us_per_s=int(400_000 * day / broker),
            disk_bytes=(60 + 5 * broker) * 2**30 + 400 * (at - now),
            behind=21 if broker == 2 and 5 * 3600 < now - at < 5 * 3600 + 900 else 0,
        )

    now = int(time.time()) // 60 * 60
    moments = [at for at in range(now - 86_400, now, 60) if not 3 * 3600 < now - at < 4 * 3600]
    BrokerSample.objects.bulk_create([sampled(broker, at) for broker in (1, 2, 3) for at in moments], batch_size=500)


def consume(world: World, instance_id: str) -> None:
    """A group with two members that lags in one partition, one that lost records, one without offsets."""
    from controlplane.kafka.group_door import Member
    from tests.controlplane.fakes import FakeGroup

    groups, key = world.admin.groups, instance_id.removeprefix("ins-")
    now_ms = int(time.time() * 1000)
    orders, payments = f"{key}.orders", f"{key}.payments"
    # At 20 records a second its reader takes half an hour, longer than stories look at it.
    groups.logs |= {(orders, 0): (8_000, [now_ms - 3_600_000 + 90 * number for number in range(40_000)])}
    groups.logs |= {(orders, number): (0, [now_ms - 60_000] * 40) for number in range(1, 6)}
    groups.logs |= {(payments, 0): (500, [now_ms - 86_400_000, now_ms - 7_000])}
    MEMBERS.extend(
        Member(f"billing-{n}-0b8f44d2-9f3e-4d6a-8f5b-2f1f2c1f9a0{n}", f"billing-{n}", f"10.20.0.{n}", held)
        for n, held in (
            (1, (("orders", 0), ("orders", 1), ("orders", 2))),
            (2, tuple(("orders", p) for p in (3, 4, 5))),
        )
    )
    groups.found |= {
        f"{key}.billing": FakeGroup({(orders, 0): 8_400} | {(orders, number): 40 for number in range(1, 6)}),
        f"{key}.audit": FakeGroup({(payments, 0): 320}),
        f"{key}.new-reports": FakeGroup(),
    }
    world.admin.transactions.begin(f"{key}.order-copier", (orders, 0), (orders, 3), age_s=42.0, at=8_200)
    world.admin.transactions.hang((payments, 2), at=HANGS_AT)


def connect(world: World, instance_id: str) -> None:
    """Clients on two brokers, one that says a script is its name; who moves most; who was refused and why."""
    from tests.controlplane.connections.conftest import Given, connection, refused, rest

    hers, mib = Given(instance_id, world.admin.connections), 2**20
    hers.say(
        1,
        connections=(
            connection("checkout-1", "10.20.0.4", sends=3 * mib, is_sent=20_000, requests=210),
            connection("billing-1", "10.20.0.1", is_sent=2 * mib, requests=9),
            connection("<script>document.title = 'hacked'</script>", "10.20.0.9", principal="User:ANONYMOUS"),
            connection("", "2001:db8::7:1f", principal="", software_name="", software_version=""),
        ),
        other_connections=rest(3, 2_048, 512),
        refused=(
            refused("198.51.100.7", "whitelist", 1_204, 4),
            refused("10.20.0.9", "sasl", 3, 800),
            refused("10.20.0.9", "tls_in_clear", 1, 7_200),
        ),
        other_refused=12,
        talkers=(
            hers.talker("checkout-1", produces=3 * mib, address="10.20.0.4"),
            hers.talker("billing-1", consumes=mib),
        ),
        other_talkers=rest(2, 900, 0),
    )
    world.admin.connections.away = {2}


def speak(world: World, instance_id: str) -> None:
    """Messages of every kind: JSON, text, bytes, a tombstone, a large one, one of somebody who tries."""
    topic, now_ms = f"{instance_id.removeprefix('ins-')}.shipments.v2", int(time.time() * 1000)
    lines = [{"article": f"a-{n}", "pieces": n} for n in range(3)]
    values = (
        json.dumps({"order": 17, "state": "paid", "customer": {"name": "Åse", "vip": True}, "lines": lines}).encode(),
        b"a line of text",
        bytes(range(200)),
        None,
        b"<script>document.title = 'hacked'</script>",
        b"long " * 60_000,
    )
    for n in range(30):
        headers = (("source", b"shop"), ("attempt", b"%d" % n)) if n % 3 == 0 else ()
        at_ms = now_ms - 60_000 + 1_000 * n
        world.admin.messages.write(
            topic, n % 3, values[n % 6], key=b"order-%d" % n, headers=headers, timestamp_ms=at_ms
        )


MEMBERS: list[Any] = []


def audit(world: World, instance_id: str) -> None:
    """An hour of what happened at an instance: one of each kind, and denials that were counted."""
    from controlplane.instances.models import Instance
    from quota.contracts.audit import AuditKind, AuditRecord
    from quota.contracts.namespace import AUDIT_TOPIC

    row = Instance.objects.unscoped("a test").get(pk=instance_id)
    Instance.objects.unscoped("a test").filter(pk=instance_id).update(config={**row.config, "audit": True})
    place, now_ms = (f"{instance_id.removeprefix('ins-')}.{AUDIT_TOPIC}", 0), int(time.time() * 1000)
    world.admin.create(place[0], partitions=1, replication_factor=3, config={})
    ann = {"principal": "User:web-shop", "client_id": "web-shop-2"}
    denied = {"api": "PRODUCE", "operation": "WRITE", "resource": "TOPIC:payments"}
    happened = (
        (AuditKind.CONNECTION, "accepted", {}),
        (AuditKind.AUTHENTICATION, "success", {"principal": "User:web-shop"}),
        (AuditKind.DENIAL, "TOPIC_AUTHORIZATION_FAILED", {**ann, **denied, "reason": "no ACL permits it", "count": 31}),
        (AuditKind.REQUEST, "NONE", {**ann, "api": "CREATE_TOPICS", "resource": "TOPIC:returns"}),
        (AuditKind.CONNECTION, "refused", {"reason": "no whitelist holds the address", "left_out": 12}),
    )
    for number in range(60):
        kind, outcome, members = happened[number % len(happened)]
        at_ms = now_ms - 3_600_000 + 60_000 * number
        record = AuditRecord(at_ms, 1 + number % 3, kind, outcome, f"10.20.0.{number}", "default", **members)
        world.admin.groups.write(place, at_ms, record.value())


def use(instance_id: str) -> Month:
    """Forty days of an instance, the last thirty hours with usage. Of the month before half was counted when it was invoiced.

    Returns that month.
    """
    from datetime import UTC, datetime, timedelta
    from decimal import Decimal

    from controlplane.billing import closing as billing
    from controlplane.billing.crediting import credit_note_write
    from controlplane.billing.models import InvoiceFailure
    from controlplane.billing.services import metering_waive
    from controlplane.billing.waiting import months_due
    from controlplane.instances.models import Instance, SpecChange
    from controlplane.metering.models import Cap, Loss, PipelineStatus, Progress
    from tests.support.usage import usage_complete, usage_raise, usage_row, user_row, users_raise

    now = datetime.now(UTC)
    month = months_due(now)[-1]
    since = min(month.start, now - timedelta(days=40))
    SpecChange.objects.unscoped("a test").update(at=since)
    Instance.objects.unscoped("a test").update(created_at=since)
    counted = {"consumed": 31_000_000_000, "stored": 9 * 10**15, "topic": "orders"}
    usage_raise([usage_row(instance_id, f"{month}-20T09", 17_000_000_000, boot="boot-before", **counted)])
    usage_raise(
        usage_row(
            instance_id,
            f"{now - timedelta(hours=29 - hour):%Y-%m-%dT%H}",
            (hour + 1) * 700_000_000 * (4 - broker) + hour * hour * 9_000_000,
            consumed=(hour + 1) * 1_100_000_000 * (4 - broker),
            stored=(hour + 1) ** 2 * 3_600 * 2_000_000_000,
            boot=f"boot-of-broker-{broker}",
            topic=topic,
            broker=broker,
            partition=broker % 3,
            offset=1000 * hour + 10 * broker,
        )
        for hour in range(30)
        for broker in (1, 2, 3)
        for topic in ("orders", "payments")
    )
    users_raise(
        user_row(
            instance_id,
            f"{now - timedelta(hours=29 - hour):%Y-%m-%dT%H}",
            user,
            (hour + 1) * 90_000_000 * (7 - place),
            (hour + 1) * 140_000_000 * (place + 1),
            (hour + 1) * 4_321,
            boot=f"boot-of-broker-{broker}",
            broker=broker,
        )
        for hour in range(30)
        for broker in (1, 2, 3)
        for place, user in enumerate(("ingest", "CN=billing,OU=Batch Jobs,O=Sea Freight Limited", "analytics", "", "*"))
    )
    at_ms = int(now.timestamp() * 1000) + 10**9
    PipelineStatus.objects.create(
        id=1,
        query="q",
        batch=7,
        records=180,
        bad_records=0,
        started_at_ms=at_ms,
        seen_at_ms=at_ms,
        problem="",
        moved_at_ms=at_ms,
        batch_ms=450,
        batch_records=180,
    )
    for partition in range(8):
        Progress.objects.create(
            partition=partition,
            topic_id="t",
            next_offset=23_000 + partition,
            end_offset=23_000 + 3 * partition,
            looked_at_ms=at_ms,
            complete_to_ms=int(now.timestamp() * 1000) - 1000 * partition,
        )
    usage_complete(month.end - timedelta(hours=3))
    about = {"actor": "admin@example.com", "reason": "broker 3 does not come back, and its counters are lost"}
    metering_waive(month=month, instance_id=instance_id, **about)
    billing.invoices_close()
    Progress.objects.update(complete_to_ms=at_ms)  # from here on the meter is not behind, however long the tests take
    credit_note_write(
        organisation=Instance.objects.unscoped("a test").get(pk=instance_id).organisation,
        invoice="inv-00000001",
        amount=Decimal("12.50"),
        reason="Half a day on which produce requests of one partition were refused, as we have written",
        actor="admin@example.com",
    )
    usage_raise([usage_row(instance_id, f"{month}-21T15", 4_000_000_000, boot="boot-late", topic="orders")])
    ill = Instance.objects.unscoped("a test").exclude(pk=instance_id).order_by("pk").first()
    InvoiceFailure(
        organisation_id=ill.organisation_id,
        instance=ill,
        month=str(month),
        at=now,
        problem="no version 3 of the plan 'gold' is on record",
    ).save()
    lost = {"kind": "expired", "start_offset": 5, "end_offset": 9, "topic_id": "t", "found_at_ms": at_ms}
    for partition, by in ((3, ""), (4, "admin@example.com")):
        sentence = f"records 5 to 8 of partition {partition} of __usage expired before they were read"
        settled = {"settled_by": by, "settled_at": now} if by else {}
        Loss.objects.create(partition=partition, sentence=sentence, **lost, **settled)
    Cap.objects.create(
        instance=instance_id,
        boot="boot-of-broker-1",
        topic="returns",
        produced_bytes=10**12,
        reason="a counter file that a power cut tore",
        set_at=now,
        set_by="admin@example.com",
    )
    return month


def wait(instance_id: str) -> None:
    """Throttled intervals of the last day: more in the evening, some below the limit, and one just now."""
    from controlplane.quotas.models import RecordedInterval
    from controlplane.quotas.services import _rows
    from tests.controlplane.quotas.conftest import document, interval

    now_ms = int(time.time() * 1000)
    RecordedInterval.objects.bulk_create(
        _rows(
            document(
                interval(
                    instance_id,
                    start=now_ms - hours_ago * 3_600_000 - minute * 60_000 - 90_000,
                    seconds=60,
                    throttled_ms=1_000 * (minute + 20),
                    under_limit_ms=1_000 if minute % 7 == 0 else 0,
                    direction="consume" if minute % 5 == 0 else "produce",
                    limit=(4 if minute % 3 else 3) * MIB,
                )
            )
            for hours_ago in range(22)
            for minute in range(1 + hours_ago * 5 % 23)
        )
    )
    # Of the limit as it is bought now, so that there is a larger one to propose.
    bought = interval(instance_id, start=now_ms - 600_000, seconds=60, throttled_ms=40_000, limit=20 * MIB)
    used_up = bought.moment._replace(brokers=tuple(each._replace(flow=7 * each.flow) for each in bought.moment.brokers))
    RecordedInterval.objects.bulk_create(_rows([document(replace(bought, moment=used_up))]))


def remember(instance_id: str) -> None:
    """Figures of the last 400 days, with days and nights, a limit that was raised, and an hour without a master."""
    from controlplane.history.models import Hour, Minute, Sample
    from controlplane.history.statements import COLUMNS

    def figures(at: int) -> dict[str, Any]:
        day = 0.55 + 0.35 * math.sin(2 * math.pi * (at % 86_400) / 86_400) + 0.06 * math.sin(at / 37)
        limit = (20 if at > now - 5 * 86_400 else 12) * MIB
        produce, consume = int(limit * day * 0.9), int(limit * day)
        return {
            "produce_bytes_per_s": produce,
            "consume_bytes_per_s": consume,
            "storage_used_bytes": 37 * 2**30 + 400 * (at - now),
            "connections": int(30 + 20 * day),
            **{f"{name}_limit_bytes_per_s": limit for name in ("produce", "consume")},
            "produce_allocated_bytes_per_s": min(limit, int(produce * 1.3)),
            "consume_allocated_bytes_per_s": min(limit, int(consume * 1.2)),
            "storage_limit_bytes": 100 * 2**30,
        }

    def rolled(at: int, minutes: int) -> dict[str, Any]:
        row, samples = figures(at), 6 * minutes
        waited = 20_000 * minutes if math.sin(at / 5000) > 0.8 else 0
        found = {name: row[name] for name in COLUMNS if name in row} | {"samples": samples, "minutes": minutes}
        for name in ("produce_bytes_per_s", "consume_bytes_per_s", "storage_used_bytes", "connections"):
            found |= {f"{name}_sum": row[name] * samples, f"{name}_max": int(row[name] * 1.15)}
        for name, share in (("produce_throttled_ms", 1), ("consume_throttled_ms", 3)):
            found |= {name: waited // share, f"{name}_max": waited // share // minutes}
        return found

    now = int(time.time()) // 3600 * 3600
    last = int(time.time()) // 10 * 10
    samples = [at for at in range(last - 3600, last, 10) if not 1500 < last - at < 1800]
    quarters, recent = range(now - 15 * 86_400, now - 25 * 3600, 600), range(now - 25 * 3600, now + 3600, 60)
    minutes = [at for at in (*quarters, *recent) if at < last - 60 and not 3 * 3600 < now - at < 4 * 3600]
    hours = range(now - 400 * 86_400, now, 6 * 3600)
    Sample.objects.bulk_create([Sample(instance=instance_id, at=at, **figures(at)) for at in samples])
    Minute.objects.bulk_create([Minute(instance=instance_id, at=at, **rolled(at, 1)) for at in minutes])
    Hour.objects.bulk_create([Hour(instance=instance_id, at=at, **rolled(at, 60)) for at in hours])
    fall_behind(instance_id, last)


def fall_behind(instance_id: str, now: int) -> None:
    """The lag of the group `billing`: it grows, is read away, and an hour of it is not known."""
    from controlplane.history.lag.rows import digest_of
    from controlplane.history.models import LagGroup, LagHours, LagMinutes

    group = LagGroup.objects.create(instance=instance_id, digest=digest_of("billing"), name="billing").pk
    minutes = [at for at in range(now // 60 * 60 - 86_400, now // 60 * 60, 60) if not 3 * 3600 < now - at < 4 * 3600]
    lags = {at: int(600 * (1.1 + math.sin(at / 900)) + 40 * math.sin(at / 7)) for at in minutes}
    LagMinutes.objects.bulk_create(
        LagMinutes(group=group, at=at, until=at, late_s=4, messages=lag, oldest_ms=1000 * at - 55 * lag, size=190 * lag)
        for at, lag in lags.items()
    )
    LagHours.objects.bulk_create(
        LagHours(
            group=group, at=at, until=at, samples=60, dated=60, messages_sum=60 * lag, messages_max=2 * lag,
            seconds_sum=3.3 * lag, seconds_max=0.11 * lag, sized=60, size_sum=60 * 190 * lag, size_max=2 * 190 * lag,
        )
        for at in range(now // 3600 * 3600 - 400 * 86_400, now // 3600 * 3600, 6 * 3600)
        for lag in [int(700 * (1.2 + math.sin(at / 400_000)))]
    )  # fmt: skip


def report(made: list[Any]) -> None:
    """Thirty days of one instance that grows, whose guarantee was missed twice; one day of another."""
    from datetime import UTC, date, datetime, timedelta

    from controlplane.metering.pipeline.quota_days import COLUMNS, Added, row_of
    from controlplane.quotas.models import QuotaDay

    last = datetime.now(UTC).date() - timedelta(days=1)
    before: dict[str, list[tuple[date, int]]] = {name: [] for name in ("produce", "consume", "storage")}

    def kept(instance_id: str, resource: str, day: date, use: int, limit: int | None, waited_ms: int) -> None:
        permille = None if limit is None else use * 1000 // limit
        added = Added(
            instance_id, resource, limit, use // 2, use, use * 11 // 10, use * 12 // 10, permille, 1440,
            waited_ms // 20_000, waited_ms, None if resource == "storage" else waited_ms // 3, before[resource][:],
        )  # fmt: skip
        QuotaDay.objects.create(**dict(zip(COLUMNS, row_of(day, added), strict=True)))

    for number in range(30):
        day = last - timedelta(days=29 - number)
        waited_ms = 600_000 if number in (11, 27) else 0
        for resource, use, limit in (
            ("produce", 9 * MIB + number * MIB // 4, 20 * MIB),
            ("consume", 6 * MIB, None),
            ("storage", (30 + number) * 2**30, 100 * 2**30),
        ):
            kept(made[1].id, resource, day, use, limit, 0 if resource == "storage" else waited_ms)
            before[resource].append((day, use))
    kept(made[0].id, "produce", last, 19 * MIB, 20 * MIB, 0)
    runs(int(time.time() * 1000))


def runs(now_ms: int) -> None:
    """One of every kind: of jobs of the pipeline."""
    from controlplane.metering.models import JobRun

    hour_ms = 3_600_000
    staged = "1 of 2 rows are staged: another run of the report removed them"
    for job, what, state, ago, took_ms, reason in (
        ("usage", "", "running", 30, 30 * hour_ms, ""),
        ("runner", "", "running", 29, 20 * hour_ms, ""),
        ("quota_report", "", "succeeded", 28, 74_000, ""),
        ("quota_report", "2026-01-05", "failed", 27, 9_000, staged),
        ("quota_report", "2026-01-05", "waiting", 0, 0, ""),
    ):
        begun = None if state == "waiting" else now_ms - ago * hour_ms
        over = None if begun is None else begun + took_ms
        JobRun.objects.create(
            job=job, what=what, state=state, asked_at_ms=begun or now_ms, asked_by="admin@example.com" if what else "",
            started_at_ms=begun, seen_at_ms=over, ended_at_ms=None if state == "running" else over, row_count=6000 if over else 0,
            done_to_ms=None if job == "runner" else over, reason=reason,
        )  # fmt: skip
    reconciled(now_ms)


def reconciled(now_ms: int) -> None:
    """Two days that were recomputed; in the second something differs from the database, and from an invoice."""
    from controlplane.metering.models import Difference, Reconciliation

    for day, different in ((4, 0), (5, 2)):
        run = Reconciliation.objects.create(
            start_hour=f"2026-01-{day:02}T00:00:00Z", end_hour=f"2026-01-{day + 1:02}T00:00:00Z",
            at_ms=now_ms - (6 - day) * 86_400_000, compared=57_600, different=different, raised=0,
        )  # fmt: skip
    about = {"reconciliation": run, "instance": "ins-k3v9x2qa", "hour": "2026-01-05T07:00:00Z"}
    Difference.objects.create(
        **about, against="database", boot="5f0c33a1b2c4d5e6", topic="orders", counter="produced_bytes",
        recomputed="81234567", known="0",
    )  # fmt: skip
    Difference.objects.create(
        **about, against="invoices", boot="", topic="", counter="stored_byte_seconds", recomputed=str(10**20), known="7",
    )  # fmt: skip


def propose(world: World, place: dict[str, Any]) -> None:
    """A change of access that would cut off two clients."""
    from controlplane.access import proposals
    from quota.contracts.proposals import Cut, Findings, Seen, findings_path
    from quota.steps import run_through

    made = proposals.proposal_make(**place, whitelist=["10.20.0.0/16"], allow_everyone=False).proposal
    now_ms = int(time.time() * 1000)
    for broker in (1, 2, 3):
        cuts = {
            Cut("User:ANONYMOUS", "127.0.0.1", "default", "CONNECT", ""): Seen(2, now_ms - 60_000, now_ms - 9_000),
            Cut("User:web-shop", "10.20.0.7", "default", "READ", "TOPIC:payments"): Seen(7, now_ms - 50_000, now_ms),
        }
        findings = Findings(made.id, now_ms - 90_000, 12, 480, 3, cuts if broker == 1 else {})
        world.tree.put(findings_path(place["instance_id"], broker), run_through(findings.to_json()))


def watch(instance: Any) -> None:
    """Alarms in every state, receivers of every kind, messages that arrived, wait and were given up; and some history."""
    from datetime import UTC, datetime, timedelta

    from controlplane.alarms.delivery.outbox import delivery_of
    from controlplane.alarms.models import Delivery
    from controlplane.health.models import HealthSpell
    from tests.controlplane.alarms.rows import alarm_row, event_row, expiring, receiver_row, throttled

    now = datetime.now(UTC)
    pager = receiver_row(instance, name="On-call pager")
    receiver_row(instance, "rcv-000000000002", name="Ops list", kind="email", address="ops@example.com", secret=b"")
    receiver_row(
        instance, "rcv-000000000003", name="Bob", kind="email", address="bob@example.com", secret=b"", code="k3v9x2qa8z"
    )
    told = {"receivers": [pager.pk, "rcv-000000000002"]}
    firing = alarm_row(
        instance, name="A third of the storage", threshold=30, repeat_s=86_400, phase="firing", told=True, told_at=now,
        since=now - timedelta(hours=2), firing_since=now - timedelta(hours=2), seen_at=now, **told,
    )  # fmt: skip
    alarm_row(instance, "alm-000000000002", name="No leader", watch="partitions_without_leader", comparison=None,
              threshold=None, seen_at=now, silenced_until=now + timedelta(hours=5), **told)  # fmt: skip
    alarm_row(instance, "alm-000000000003", name="Much traffic", watch="produce_percent", threshold=5, duration_s=86_400,
              seen_at=now)  # fmt: skip
    alarm_row(instance, "alm-000000000004", name="Quiet at night", watch="connections", comparison="below", threshold=1,
              enabled=False)  # fmt: skip
    for number in range(12):
        event_row(
            firing, "resolved" if number % 2 else "fired", now - timedelta(hours=2 + 9 * number), value=37 - number
        )
        document = {"type": "alarm.firing", "data": {"alarm": {"name": firing.name}}}
        row = delivery_of(pager, kind="alarm", document=document, at=now - timedelta(hours=2 + 9 * number))
        row.state, row.attempts = ("sent", 1) if number else ("waiting", 4)
        row.error = "" if number else "hooks.example.com answers 503; it will be there again tomorrow"
        row.next_attempt_at = now + timedelta(days=1)
        if number == 3:
            row.state, row.error = "failed", "hooks.example.com has no public address"
        row.save(force_insert=True)
    assert Delivery.objects.unscoped("a test").count() == 12
    alarm_row(instance, "alm-000000000005", name="Billing falls behind", watch="group_lag_seconds", group="not-there-yet",
              threshold=60, phase="no_data", missing="no_group", seen_at=now - timedelta(minutes=5))  # fmt: skip
    expiring(instance, now - timedelta(minutes=50))
    for number in range(4):
        began = now - timedelta(minutes=20, hours=7 * number)
        throttled(instance, began, began + timedelta(minutes=8), direction="consume" if number % 2 else "produce")
    for number in range(3):
        at = now - timedelta(days=number, hours=3)
        HealthSpell.objects.create(instance=instance.pk, code="throttled_under_limit", title="Throttled below its limit",
                                   began_at=at, ended_at=at + timedelta(minutes=4))  # fmt: skip


def spend(instance: Any) -> None:
    """Costs as the task computes them; a budget of all instances that is nearly used up, one of an instance, a history."""
    from datetime import UTC, datetime, timedelta
    from decimal import Decimal

    from controlplane.alarms.models import Receiver
    from controlplane.billing.costs import costs_refresh
    from tests.controlplane.budgets.rows import alert_row, budget_row

    costs_refresh()
    now, organisation = datetime.now(UTC), instance.organisation
    receivers = Receiver.objects.for_organisation(organisation).order_by("pk")
    made = budget_row(organisation, *receivers, name="Kafka altogether", amount=Decimal("60.00"))
    budget_row(organisation, budget_id="bud-000000000002", name="Orders", instance=instance, amount=Decimal("5000.00"))
    for number, (kind, percent) in enumerate([("actual", 80), ("forecast", 100), ("actual", 50)]):
        at = now - timedelta(days=number)
        alert_row(made, month=f"{at:%Y-%m}", kind=kind, percent=percent, at=at, counted_until=at, messages=number % 2)


def fill_up(instance: Any) -> None:
    """A policy that shortens retention: topics of which it was shortened, what it did, and what it could not do."""
    from datetime import UTC, datetime, timedelta

    from controlplane.core.models import Operation
    from controlplane.policies.models import DiskPolicy, ShortenedTopic

    now, day_ms, owner = datetime.now(UTC), 24 * 3_600_000, {"organisation": instance.organisation}
    problem = "all records are younger than the floor of 60 min: shorter retention deletes nothing"
    about = {**owner, "instance": instance}
    DiskPolicy(**about, policy="retention", problem=problem, problem_at=now - timedelta(hours=1)).save(
        force_insert=True
    )
    for topic, own_ms in (("orders", None), ("payments", 10 * day_ms)):
        before_ms = own_ms or 7 * day_ms
        ShortenedTopic(
            **about,
            topic=topic,
            own_ms=own_ms,
            before_ms=before_ms,
            now_ms=before_ms // 2,
            since=now - timedelta(days=1),
        ).save(force_insert=True)
    said = (
        "retention is shortened (steps: 2 of 10 %, topics: 2): up to 12000 records go, of which groups have not read 340: "
        "billing (orders: 300), a-group-with-a-rather-long-name (payments: 40)"
    )
    for number, (state, result) in enumerate([("failed", None), ("succeeded", {"said": said})]):
        at = now - timedelta(hours=1 + number)
        Operation(
            id=f"op-00000000pol{number}", **owner, kind="policies.shorten", target=instance.pk, actor="system", state=state,
            steps=[{"name": "find out what goes", "state": state, "note": ""}], result=result, arguments={"revision": 1},
            error="" if result else problem, runnable_at=at, created_at=at, finished_at=at,
        ).save(force_insert=True)  # fmt: skip


def load(instance: Any) -> None:
    """Loads into a lake: one that runs, with all kinds of runs before it; one whose topic is another now; one that never ran."""
    from datetime import UTC, datetime, timedelta

    from controlplane.core.sealed import sealed
    from controlplane.loads.models import Load, LoadRun
    from tests.controlplane.loads.rows import load_row

    now = datetime.now(UTC)

    def run(row: Load, hours: float, **members: Any) -> None:
        at = now - timedelta(hours=hours)
        usual = {
            "state": "succeeded",
            "asked_by": "",
            "started_at": at,
            "ended_at": at + timedelta(minutes=2, seconds=14),
        }
        LoadRun(load=row, organisation=instance.organisation, asked_at=at, **usual | members).save(force_insert=True)

    hourly = load_row(
        instance, "load-000000000001", every_minutes=60, kind="bucket", bucket="acme-analytics", path="kafka/orders",
        region="eu-central-1", access_key="AKIAIOSFODNN7EXAMPLE", schema="id BIGINT, customer STRING, amount DECIMAL(12,2)",
        secret_key=sealed(Load, "secret_key", b"never-shown", id="load-000000000001"), next_start_at=now + timedelta(minutes=43),
    )  # fmt: skip
    said = "12,431 rows, 4,201,337 bytes of keys and values, 1 commit, 41.2 s; topic id rJ0fPqkzTqu7xjB4w1sZyA"
    loaded = {"says": said, "exit_status": 0, "row_count": 12_431, "byte_count": 4_201_337, "commits": 1}
    again = {"offsets": {"0": [100, 200], "3": [0, 50]}}
    run(
        hourly,
        4,
        **loaded,
        gaps=["offsets 0 to 99 of partition 2"],
        asked={"skip_expired": True},
        asked_by="alice@example.com",
    )
    run(hourly, 3, state="stopped", says="stopped; what was committed by then stays, and the next run goes on there", commits=2,
        asked=again, asked_by="alice@example.com")  # fmt: skip
    run(
        hourly, 2, state="failed", exit_status=1, says="Kafka does not say what the topic is: the brokers do not answer"
    )
    run(hourly, 1, **loaded, problems=3)
    run(hourly, 0.01, state="running", ended_at=None, asked_by="alice@example.com", seen_at=now + timedelta(days=1),
        says="commit 2 of 5: reading 1,000,000 offsets: 12 s, 3 of 8 tasks")  # fmt: skip
    payments = load_row(instance, "load-000000000002", topic="payments", every_minutes=1440, failures=3,
                        next_start_at=now + timedelta(minutes=4))  # fmt: skip
    run(payments, 5, state="failed", exit_status=3, says=(
        "the table was loaded from the topic with the id rJ0fPqkzTqu7xjB4w1sZyA, and the topic of this name has the id "
        "bW9hPqkzTqu7xjB4w1sZyB: it was deleted and made again. new_topic goes on with the new one, from its beginning; the rows "
        "of the old one stay, under its id."
    ))  # fmt: skip
    load_row(instance, "load-000000000003", topic="shipments.v2", enabled=False, every_minutes=30)


class Quiet(WSGIRequestHandler):
    """Says nothing of what it serves."""

    def log_message(self, *_arguments: Any) -> None:
        return


class Server(ThreadingMixIn, WSGIServer):
    """A thread for each request."""

    daemon_threads = True


def main() -> None:
    with MailServer() as mail, WebhookServer() as hook:
        provider = Provider()
        try:
            served(Path(sys.argv[1]), mail, hook, provider)
        finally:
            provider.close()


def served(directory: Path, mail: MailServer, hook: WebhookServer, provider: Provider) -> None:
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "controlplane.settings",
        "DATABASE_URL": f"sqlite:///{directory}/db.sqlite3",
        "SLUICE_STACK_DIR": str(directory),
        "SLUICE_SECRETS_FILE": str(directory / "secrets.json"),
        "SLUICE_ENCRYPTION_KEYS_FILE": str(Path(__file__).parents[1] / "support" / "encryption.keys"),
        "SLUICE_SMTP": f"127.0.0.1:{mail.port}",
        "SLUICE_SMTP_SECURITY": "off",
        "SLUICE_EMAIL_FROM": "alarms@sluice.example.com",
        "SLUICE_WEBHOOK_NETWORKS": "127.0.0.0/8",
        "SLUICE_LAKE_FOLDERS": "file:/lake",
        "SLUICE_LAKE_BUCKETS": "aws",
    }
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    call_command("migrate", verbosity=0)

    from controlplane.accounts import attempts
    from controlplane.clusters import master, zookeeper
    from controlplane.core import operations
    from controlplane.kafka import (
        client,
        config_door,
        connection_door,
        group_door,
        message_door,
        placement_door,
        record_door,
        size_door,
        transaction_door,
    )
    from controlplane.quotas.figures import figures_keep
    from controlplane.wsgi import application

    world = World(directory, mail, hook, provider)
    attempts.MOST_ASKED = 1000  # all people of these stories come from one address
    zookeeper.connection = lambda _cluster: world.enter(world.tree)
    client.admin = lambda _cluster: world.enter(world.admin)
    group_door.door = lambda _cluster: world.read_on(world.enter(world.admin).groups)
    message_door.door = lambda _cluster: world.enter(world.admin).messages
    placement_door.door = lambda _cluster: world.enter(world.admin).placement
    record_door.reader = lambda _cluster, place: world.enter(world.admin).groups.reader(place)
    transaction_door.door = lambda _cluster: world.enter(world.admin).transactions
    connection_door.door = lambda _cluster: world.enter(world.admin).connections
    config_door.door = lambda _cluster: world.enter(world.admin).config_rows
    size_door.door = lambda _cluster: world.enter(world.admin).sizes
    master.allocation, master.short, master.brokers = world.allocation, world.short, world.broker_rows
    master.allocations = world.allocations
    operations.wake = lambda _ids: None
    prepare(world)
    figures_keep()  # where the masters stop, there is something to go on with, however soon
    server = make_server("127.0.0.1", 0, world.before(application), server_class=Server, handler_class=Quiet)
    world.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=world.work, daemon=True).start()
    partial = directory / "port.part"
    partial.write_text(str(server.server_port))
    partial.rename(directory / "port")
    server.serve_forever()


if __name__ == "__main__":
    main()
