"""Every page of the console and every REST list, with 2,000 instances of 50 topics: under 30 queries and 300 ms of CPU.

The first of them has told usage in every hour of this month and the one before, of each topic on three brokers: more than
100,000 rows a month, of which the days that ended SLUICE_METERING_KEEP_DAYS ago are folded, as beat has them folded.

One organisation has them all; as many others have one instance each, for what is searched without a tenant. Every instance
has what the last minutes have left of it: samples, minutes, requests and lag; there are 10,000 groups with minutes of lag in
the last ten, five of each instance, and a tenth as many more in the first. The first has all that is kept of an instance. The
addresses come from the routes, so that a page or a list added later is measured by having a route.

Measured is this thread: the database's part is in it on SQLite, which runs in here; ZooKeeper, brokers and masters are fakes,
which cost next to nothing. Of five requests after one that warms up:

* the least CPU time is under 300 ms: what others do to the machine meanwhile is no page's fault;
* the median of the time on the clock is under 300 ms on a machine that is quiet, and longer where it is not
  (`tests.support.waiting.promised`).

On PostgreSQL, where CPU time of this thread has nothing of the database's, the clock is what counts: a test of its own runs
all of it there. The slowest are printed, and kept in var/reports/scale.json. The ordinary run counts queries only, with 200
instances.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from datetime import timedelta
from functools import partial
from typing import NamedTuple
from urllib.parse import urlencode

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import resolve, reverse

import controlplane.urls  # noqa: F401  # it knows the converters that the routes use
from controlplane.access import proposals, users
from controlplane.accounts import services as accounts
from controlplane.accounts.identity.links import link_make
from controlplane.accounts.models import ApiKey, LinkPurpose, User
from controlplane.alarms.models import AlarmEvent, Delivery, Receiver, ThrottledSpell
from controlplane.alarms.rules import MOST_RECEIVERS, MOST_RULES
from controlplane.api import pagination
from controlplane.api.parameters import declared
from controlplane.billing.closing import invoice_close
from controlplane.billing.models import MonthCost
from controlplane.billing.pricing.rating import Month
from controlplane.budgets.models import BudgetAlert
from controlplane.budgets.rules import MOST_BUDGETS
from controlplane.certificates.models import RouteCertificate
from controlplane.clusters import zookeeper
from controlplane.console import urls
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import Operation
from controlplane.env import ROOT
from controlplane.health.models import HealthSpell
from controlplane.history.lag import samples
from controlplane.history.lag.rows import digest_of
from controlplane.history.models import (
    Hour,
    LagGroup,
    LagHours,
    LagMinutes,
    LagSample,
    Minute,
    RequestDay,
    RequestHour,
    RequestMinute,
    RequestSample,
    Sample,
)
from controlplane.history.requests.by_broker import text_of
from controlplane.instances.models import Instance
from controlplane.instances.reconcile import publish
from controlplane.instances.spec import DEFAULT_ROUTE
from controlplane.loads.models import LoadRun
from controlplane.loads.services import MOST_LOADS, MOST_RUNS_KEPT
from controlplane.metering import folding
from controlplane.metering.models import JobRun, UsageMaximum
from controlplane.metering.pipeline import folded
from controlplane.metering.pipeline.quota_days import RESOURCES
from controlplane.metering.pipeline.schedule import JOBS
from controlplane.metering.selectors import hour_text
from controlplane.quotas.models import QuotaDay
from controlplane.tenants import invitations
from controlplane.tenants.models import Membership, Organisation, Role
from controlplane.throttle_rules.services import throttle_rule_create
from quota.contracts.topics_moved import TopicsMoved
from tests.support import postgresql
from tests.support.evidence import kept, moment
from tests.support.ports import free_port
from tests.support.postgresql import PostgreSQLServer
from tests.support.usage import user_row, users_raise
from tests.support.waiting import promised

from .admission.rows import change_row
from .alarms.rows import alarm_row, receiver_row
from .billing.rows import note_row
from .budgets.rows import budget_row
from .console.test_cost_of_pages import populate
from .console.test_who_sees_what import POSTS_ONLY
from .history.conftest import counts_of, keep, keep_requests, rolled, sample
from .identity.rows import sign_up_row
from .loads.rows import load_row
from .rebalancing.rows import rebalance_row
from .rows import custom_role_row, service_account_row
from .sso.rows import provider_row
from .test_foreign_ids import PREFIX, endpoints
from .token_issuers.rows import token_issuer_row

ALARM, RECEIVER, BUDGET = "alm-000000000001", "rcv-000000000001", "bud-000000000001"
LOAD = "load-000000000001"
MOST_QUERIES, MOST_MS = 30, 300
GROUPS_EACH, GROUPS_OF_ALL = 5, 10_000
MORE_OF_FIRST = GROUPS_OF_ALL // 10
LATELY_MINUTES = 10
SLOWEST = 10
"""So many addresses are kept in the report."""
VARIANTS = {  # what a page shows more of when it is asked
    "instances": ["?q=instance&page=2", "?sort=-storage_gib&page=2", "?sort=health&page=2", "?health=healthy&page=2"],
    "instance_names": ["?page=2"],
    "operations": ["?q=instance&page=2"],
    "palette": ["?q=topic-0", "?q=reset+offsets+of+topic"],
    "search": ["?q=e", "?q=topic-007&kind=topic", "?q=10.1.2.3", "?q=2026"],
    "fleet_search": ["?q=ins", "?q=broker"],
    "bills": ["?q=instance&page=2"],
    "statement": [f"?month={Month.of(SYSTEM_CLOCK.now()).before(1)}"],
    "fleet": ["?q=instance&page=2"],
    "fleet_heat": ["?of=instances", "?of=now&measure=allocation", "?measure=isr&range=24h"],
    "fleet_broker": ["?range=24h"],
    "fleet_capacity": ["?cluster=default"],
    "fleet_brokers": ["?cluster=default"],
    "fleet_jobs": ["?job=quota_report&page=2"],
    "fleet_quota_report": ["?show=soon&q=ins", "?show=missed&page=2", "?day=2026-11-21"],
    "groups": ["?by=lag", "?sort=-lag_messages", "?state=Empty"],
    "topics": ["?sort=-partitions", "?sort=-stored_bytes"],
    "group": ["?range=15d", "?range=400d"],
    "topic": ["?range=24h", "?range=15d", "?range=400d"],
    "instance_history": ["?range=24h", "?range=15d", "?range=400d"],
    "instance_broker": ["?range=24h", "?range=15d", "?range=400d"],
    "instance_what_if": ["?ask=1&bandwidth_mib_per_s=5&plan="],
    "instance_snippets": ["?topic=topic-007"],
    "instance_usage": [f"?month={Month.of(SYSTEM_CLOCK.now())}"],
}
SORTED = {
    "/instances": ["-storage_gib", "health"],
    "/cost/instances": ["-so_far"],
    "/topics": ["-partitions", "-stored_bytes"],
    "/groups": ["-lag_messages", "state"],
    "/operations": ["kind"],
    "/api-keys": ["-last_used_at"],
}
"""Orders of lists by REST, by the end of their addresses: the longest that fits."""
ASKED = {
    "prepaid-price": "?bandwidth_mib_per_s=20&storage_gib=100&partitions=300",
    "search": "?q=topic-0&limit=50",
}
"""Without these REST answers nothing."""
READERS = "topic-007-readers"
ANONYMOUS = {"sign_up", "sign_up_confirm", "sign_in", "sign_in_sso", "sso_back", "api_docs"}
REFUSED = "/sign-in/sso/back/"
"""Beginning of pages that are for whoever comes back from elsewhere: who does not is told so."""
OF_OPERATORS = {
    "metering/months",
    "metering/fold",
    "metering/reconciliations",
    "metering/differences",
    "metering/waivers",
    "metering/caps",
    "metering/brokers",
    "quota-report",
    "neighbours",
    "jobs",
    "jobs/<str:job>/runs",
    "capacity",
    "organisations/<id:organisation_id>/caps",
    "organisations/<id:organisation_id>/invoices/<id:number>/credit-notes",
}
OF_OPERATORS |= {"clusters"} | {
    f"clusters/<cluster:cluster>{part}"
    for part in ("", "/brokers/<int:broker>", "/brokers/<int:broker>/history", "/events", "/leaving", "/rebalancing")
}
OF_FLEET = {f"fleet/{part}" for part in ("instances", "organisations", "operations", "brokers", "heat", "problems")}
OF_OPERATORS |= OF_FLEET | {"taxes", "metering/losses", "fleet/instances/<id:instance_id>"}
OF_OPERATORS |= {"organisations/<id:organisation_id>/credit-notes/<id:note>/pdf"}
OF_OPERATORS |= {"balance", "rebalances"} | {
    f"rebalances/<id:rebalance_id>{part}" for part in ("", "/moves", "/events")
}


@pytest.fixture
def crowd(db):
    """Organisations with one instance each, made as rows."""

    def make(cluster_of, count):
        now = SYSTEM_CLOCK.now()
        made = Organisation.objects.bulk_create(
            Organisation(id=f"org-{number:012}", name=f"small {number}", created_at=now) for number in range(count)
        )
        Instance.objects.unscoped("a test").bulk_create(
            Instance(
                id=f"ins-{number:08}", organisation=organisation, cluster=cluster_of.cluster, name=f"only {number}",
                bandwidth_mib_per_s=20, storage_gib=100, partitions=300, state="running", created_at=now,
            )
            for number, organisation in enumerate(made)
        )  # fmt: skip

    return make


def pages(alice, at_staff, first, rule_id):
    """Every page that can be opened, by name: (who, address)."""
    at_alice = Client()
    at_alice.force_login(alice.user)
    now = SYSTEM_CLOCK.now()
    _, token = invitations.invitation_create(
        organisation=alice.organisation, inviter=alice.user, email="dora@example.com", role=Role.VIEWER
    )
    link = partial(link_make, user=alice.user, address=alice.user.email, now=now)
    tokens = {
        "invitation": token,
        "sign_up_confirm": sign_up_row(),
        "password_reset": link(purpose=LinkPurpose.RESET).rpartition("/")[2],
        "sign_in_browser": link(purpose=LinkPurpose.BROWSER).rpartition("/")[2],
        "address_confirm": link(purpose=LinkPurpose.VERIFY).rpartition("/")[2],
    }
    ids = {
        "organisation_id": alice.organisation.id,
        "owner_id": alice.organisation.id,
        "whose": alice.organisation.id,
        "role_id": custom_role_row(alice.organisation, "rol-ofthepages00").id,
        "service_account_id": service_account_row(alice.organisation, "svc-ofthepages00").id,
        "instance_id": first,
        "topic": "topic-007",
        "part": "value",
        "partition": 0,
        "offset": 0,
        "group": READERS,
        "member": "reader-1",
        "transactional_id": "topic-007-copier",
        "user": "alice",
        "route_id": "default",
        "hour": f"{now:%Y-%m-%dT%H}",
        "number": "inv-00000001",
        "note": "crn-00000001",
        "rule_id": rule_id,
        "operation_id": Operation.objects.for_organisation(alice.organisation).first().id,
        "alarm_id": ALARM,
        "budget_id": BUDGET,
        "receiver_id": RECEIVER,
        "load_id": LOAD,
        "rebalance_id": rebalance_row(Instance.objects.unscoped("a test").get(pk=first).cluster, moves=1_000).id,
        "cluster": "default",
        "broker": 1,
    }
    for route in urls.urlpatterns:
        if route.name in POSTS_ONLY:
            continue
        ids["token"] = tokens.get(route.name)
        base = reverse(f"console:{route.name}", kwargs={name: ids[name] for name in route.pattern.converters})
        who = at_staff if route.name.startswith("fleet") else Client() if route.name in ANONYMOUS else at_alice
        for more in ["", *VARIANTS.get(route.name, [])]:
            yield who, base + more


def lists(alice, first, rule_id):
    """Everything that REST answers to GET, a list with its largest page too."""
    ids = {
        "<id:instance_id>": first,
        "<id:organisation_id>": alice.organisation.id,
        "<str:topic>": "topic-007",
        "<int:partition>": "0",
        "<int:offset>": "0",
        "<int:broker>": "1",
        "<name:group>": READERS,
        "<name:transactional_id>": "topic-007-copier",
        "<id:operation_id>": Operation.objects.for_organisation(alice.organisation).first().id,
        "<id:number>": "inv-00000001",
        "<id:note>": "crn-00000001",
        "<id:key_id>": ApiKey.objects.for_organisation(alice.organisation).first().id,
        "<id:rule_id>": rule_id,
        "<id:role_id>": custom_role_row(alice.organisation, "rol-ofthelists00").id,
        "<id:service_account_id>": service_account_row(alice.organisation, "svc-ofthelists00").id,
        "<id:change_id>": change_row(Instance.objects.for_organisation(alice.organisation).get(pk=first)).id,
        "<route:route_id>": "default",
        "<name:user>": "alice",
        "<id:alarm_id>": ALARM,
        "<id:load_id>": LOAD,
        "<id:budget_id>": BUDGET,
        "<id:receiver_id>": RECEIVER,
        "<int:membership_id>": str(Membership.objects.filter(organisation=alice.organisation).first().pk),
        "<id:issuer_id>": token_issuer_row(Instance.objects.for_organisation(alice.organisation).get(pk=first)).id,
    }
    for method, text in endpoints():
        if method != "get" or text in OF_OPERATORS:
            continue
        for name, value in ids.items():
            text = text.replace(name, value)  # noqa: PLW2901
        assert "<" not in text, text
        yield alice.api, f"/{PREFIX}{text}{ASKED.get(text, '')}"
        taken = declared(resolve(f"/{PREFIX}{text}").func.view_class, "GET") or ()
        if text not in ASKED and "limit" in taken:
            yield alice.api, f"/{PREFIX}{text}?limit=200"
        for order in (
            SORTED.get(max(filter(f"/{text}".endswith, SORTED), key=len, default=""), ()) if "sort" in taken else ()
        ):
            yield alice.api, f"/{PREFIX}{text}?limit=200&sort={order}"


def history(first, *, everything):
    """Every sample, minute and hour of an instance that is kept; or those of the last hour."""
    now = int(SYSTEM_CLOCK.now().timestamp())
    keep(sample(now // 10 * 10 - 10 * number, first, produce_bytes_per_s=number) for number in range(360))
    for model, step_s, most in ((Minute, 60, 15 * 1440), (Hour, 3600, 400 * 24)):
        model.objects.bulk_create(
            rolled(model, now // step_s * step_s - step_s * number, first)
            for number in range(1, most if everything else 60)
        )
    text = counts_of(300, errors={"NOT_LEADER_OR_FOLLOWER": 1}).to_text()
    moved = TopicsMoved()
    for number in range(200):
        moved.count(f"topic-{number:03}", 1_000_000 + number, 5_000_000)
    topics = json.dumps(moved.to_json())
    brokers = text_of(dict.fromkeys(range(1, 4), counts_of(100)))
    for model, step_s, most in (
        (RequestMinute, 60, 15 * 1440), (RequestHour, 3600, 400 * 24), (RequestDay, 86_400, 400),
    ):  # fmt: skip
        model.objects.bulk_create(
            model(
                instance=first,
                at=now // step_s * step_s - step_s * number,
                windows=6,
                counts=text,
                topics=topics,
                brokers=brokers,
            )
            for number in range(1, most if everything else 60)
        )
    keep_requests(
        Instance.objects.unscoped("a test").get(pk=first),
        {now // 10 * 10 - 10 * number: counts_of(50) for number in range(3, 360)},
    )
    items = [samples.INSTANCE, samples.group_key(READERS), samples.topic_key("topic-007")]
    items += [samples.group_key(f"group {number}") for number in range(samples.ITEMS_IN_A_ROW - len(items))]
    LagSample.objects.bulk_create(
        LagSample(
            instance=first, part=1, at=at, until=at, late_s=1, digest=number,
            figures=json.dumps({key: [number, 1000 * (at - number), 100 * number] for key in items}),
        )
        for number in range(1, 360)
        for at in [now // 10 * 10 - 10 * number]
    )  # fmt: skip
    group = LagGroup.objects.create(instance=first, digest=digest_of(READERS), name=READERS).pk
    minutes, hours = (range(1, most if everything else 60) for most in (15 * 1440, 400 * 24))
    LagMinutes.objects.bulk_create(
        LagMinutes(group=group, at=at, until=at, late_s=3, messages=number, oldest_ms=1000 * (at - number))
        for number in minutes
        for at in [now // 60 * 60 - 60 * number]
    )
    LagHours.objects.bulk_create(
        LagHours(
            group=group, at=at, until=at, samples=60, dated=60, messages_sum=number, messages_max=number,
            seconds_sum=number, seconds_max=number,
        )
        for number in hours
        for at in [now // 3600 * 3600 - 3600 * number]
    )  # fmt: skip


def lately(instances, first):
    """What the last minutes have left of every instance, and of GROUPS_EACH of its groups; of the first of more groups.

    Of the first there is more already (`history`): what is there stays.
    """
    now = int(SYSTEM_CLOCK.now().timestamp())
    others = [each for each in instances if each != first]
    tens, minutes = now // 10 * 10, now // 60 * 60
    Sample.objects.bulk_create(Sample(**sample(tens - 10 * ago, each)) for each in others for ago in range(6))
    Minute.objects.bulk_create(
        rolled(Minute, minutes - 60 * ago, each) for each in others for ago in range(1, LATELY_MINUTES + 1)
    )
    Hour.objects.bulk_create(rolled(Hour, now // 3600 * 3600 - 3600, each) for each in others)
    asked = {
        "counts": counts_of(300, errors={"NOT_LEADER_OR_FOLLOWER": 1}).to_text(),
        "topics": json.dumps({f"topic-{topic:03}": [10**6 + topic, 5 * 10**6] for topic in range(50)}),
        "brokers": text_of(dict.fromkeys(range(1, 4), counts_of(100))),
    }
    RequestSample.objects.bulk_create(
        RequestSample(instance=each, at=tens - 10 * ago, windows=1, **asked) for each in others for ago in range(3, 9)
    )
    RequestMinute.objects.bulk_create(
        RequestMinute(instance=each, at=minutes - 60 * ago, windows=6, **asked)
        for each in others
        for ago in range(1, LATELY_MINUTES + 1)
    )
    names = [(each, f"topic-{number:03}-readers") for each in instances for number in range(GROUPS_EACH)]
    names += [(first, f"many-{number:04}") for number in range(MORE_OF_FIRST * len(names) // GROUPS_OF_ALL)]
    LagGroup.objects.bulk_create(LagGroup(instance=each, digest=digest_of(name), name=name) for each, name in names)
    groups = LagGroup.objects.exclude(name=READERS).values_list("pk", flat=True)
    LagMinutes.objects.bulk_create(
        LagMinutes(group=group, at=at, until=at, late_s=3, messages=1 + group, oldest_ms=1000 * (at - ago), size=100)
        for group in groups
        for ago in range(1, LATELY_MINUTES + 1)
        for at in [minutes - 60 * ago]
    )
    keys = [samples.INSTANCE, *(samples.group_key(f"topic-{number:03}-readers") for number in range(GROUPS_EACH))]
    LagSample.objects.bulk_create(
        LagSample(
            instance=each, part=1, at=tens - 10 * ago, until=tens - 10 * ago, late_s=1, digest=ago,
            figures=json.dumps({key: [1 + ago, 1000 * (tens - ago), 100] for key in keys}),
        )
        for each in others
        for ago in range(1, 7)
    )  # fmt: skip
    return len(names)


def alarms(instance):
    """As many as an instance can have, with a long history, and messages to each of its receivers."""
    now = SYSTEM_CLOCK.now()
    receivers = [receiver_row(instance, f"rcv-{number:012}") for number in range(MOST_RECEIVERS)]
    made = [
        alarm_row(instance, f"alm-{number:012}", receivers=[each.pk for each in receivers], firing_since=now)
        for number in range(MOST_RULES)
    ]
    place = {"organisation": instance.organisation, "instance": instance}
    AlarmEvent.objects.unscoped("a test").bulk_create(
        AlarmEvent(alarm=made[number % 2], name="a", kind="fired", at=now - timedelta(minutes=number), value=1, **place)
        for number in range(1_000)
    )
    Delivery.objects.unscoped("a test").bulk_create(
        Delivery(
            id=f"dlv-{number:012}", receiver=receivers[number % len(receivers)], address="a", kind="test", state="sent",
            document={"type": "alarm.test"}, created_at=now - timedelta(seconds=number), next_attempt_at=now, **place,
        )
        for number in range(1_000)
    )  # fmt: skip
    ThrottledSpell.objects.bulk_create(
        ThrottledSpell(
            instance=instance.pk, direction="produce", began_at=now - timedelta(minutes=10 * number + 8),
            until_at=now - timedelta(minutes=10 * number),
        )
        for number in range(2_000)
    )  # fmt: skip
    HealthSpell.objects.bulk_create(
        HealthSpell(
            instance=instance.pk, code="storage_full", title="Storage is full", began_at=now - timedelta(hours=number + 1),
            ended_at=now - timedelta(hours=number),
        )
        for number in range(500)
    )  # fmt: skip


def loads(instance):
    """As many as an instance can have, each with as many runs as are kept."""
    for number in range(MOST_LOADS):
        load_row(instance, f"load-{number:012}", every_minutes=60)
    LoadRun.objects.unscoped("a test").bulk_create(
        LoadRun(
            load_id=f"load-{number % MOST_LOADS:012}", organisation=instance.organisation,
            state="failed", exit_status=4, asked_at=SYSTEM_CLOCK.now(), says="no longer in the topic",
        )
        for number in range(MOST_LOADS * MOST_RUNS_KEPT)
    )  # fmt: skip


def budgets(alice):
    """As many as there can be, each telling ten, with long histories; and what each instance costs, as last computed."""
    now, month = SYSTEM_CLOCK.now(), str(Month.of(SYSTEM_CLOCK.now()))
    receivers = list(Receiver.objects.for_organisation(alice.organisation))
    made = [budget_row(alice.organisation, *receivers, budget_id=f"bud-{number:012}") for number in range(MOST_BUDGETS)]
    BudgetAlert.objects.unscoped("a test").bulk_create(
        BudgetAlert(
            organisation=alice.organisation, budget=made[1], month=month, kind="actual", percent=number, amount=1, so_far=1,
            forecast=1, counted_until=now, at=now - timedelta(minutes=number), messages=1,
        )
        for number in range(1_000)
    )  # fmt: skip
    MonthCost.objects.unscoped("a test").bulk_create(
        MonthCost(
            organisation=alice.organisation, instance=instance, month=month, currency="CNY", so_far=1, forecast=2,
            counted_until=now, computed_at=now,
        )
        for instance in Instance.objects.for_organisation(alice.organisation)
    )  # fmt: skip


def quota_report(alice, first):
    """Of everybody yesterday, and a month of one instance; with runs of the jobs that made it."""
    yesterday = SYSTEM_CLOCK.now().date() - timedelta(days=1)
    names = Instance.objects.for_organisation(alice.organisation).values_list("pk", flat=True)
    days = [(name, yesterday) for name in names] + [(first, yesterday - timedelta(days=ago)) for ago in range(1, 30)]
    QuotaDay.objects.bulk_create(
        QuotaDay(
            instance=name, day=day.isoformat(), resource=resource, limit_in_force=2**20, p50=2**18, p95=2**19, p99=2**19,
            most=2**20, used_permille=number % 1000, minutes=1440, throttled_minutes=3, throttled_ms=70_000, under_limit_ms=5,
            guarantee=("kept", "missed")[number % 2], exhausted_on=(day + timedelta(days=number % 60 + 1)).isoformat(),
        )
        for number, (name, day) in enumerate(days)
        for resource in RESOURCES
    )  # fmt: skip
    now_ms = int(SYSTEM_CLOCK.now().timestamp() * 1000)
    JobRun.objects.bulk_create(
        JobRun(
            job=job, state="failed" if number % 3 else "succeeded", reason="the database is away" if number % 3 else "",
            **dict.fromkeys(("asked_at_ms", "started_at_ms", "seen_at_ms", "ended_at_ms"), now_ms - number * 3_600_000),
        )
        for number in range(400, 0, -1)
        for job in JOBS
    )  # fmt: skip


def operators_lists(operator, first):
    """What REST answers operators of all instances, and of what makes it."""
    for text in sorted(OF_FLEET):
        yield operator.api, f"/{PREFIX}{text}"
        if text not in ("fleet/heat", "fleet/problems"):
            yield operator.api, f"/{PREFIX}{text}?limit=200"
    yield operator.api, f"/{PREFIX}fleet/instances/{first}"
    yield operator.api, f"/{PREFIX}fleet/instances?limit=200&sort=-storage_gib&search=ins"
    yield operator.api, f"/{PREFIX}fleet/heat?of=instances"
    for text in ("taxes", "metering/losses"):
        yield operator.api, f"/{PREFIX}{text}"
    for text in ("quota-report", "jobs", "jobs/quota_report/runs"):
        yield operator.api, f"/{PREFIX}{text}"
        if text != "jobs":
            assert operator.api.get(f"/{PREFIX}{text}").json()["next"]
            yield operator.api, f"/{PREFIX}{text}?limit=200"


def throttle_rule(alice, first):
    """Its id, of an instance that has a user and a proposal as well. Brokers have to know the instance before."""
    publish(zookeeper.tree(None), first)
    users.user_create(organisation=alice.organisation, actor="alice", instance_id=first, name="alice")
    proposals.proposal_make(organisation=alice.organisation, actor="alice", instance_id=first, whitelist=[])
    limit = {"kind": "topic", "topics": ["topic-007"], "produce_mib_per_s": 1.0}
    return throttle_rule_create(organisation=alice.organisation, actor="alice", instance_id=first, **limit).id


def usage_of_last_month(alice, at_alice, first):
    """What sums or lists a whole month of usage, in the console and by REST; the records from the middle, too."""
    month = last_month()
    for path in ("usage", "bill", "bill/topics", "bill/users", "bill/what-if"):
        yield at_alice, f"/{alice.organisation.id}/instances/{first}/{path}?month={month}"
    base, span = (
        f"/{PREFIX}instances/{first}",
        urlencode({"from": month.start.isoformat(), "to": month.end.isoformat()}),
    )
    for path in ("bill", "cost", "cost/topics", "cost/users", "what-if"):
        yield alice.api, f"{base}/{path}?month={month}"
    yield alice.api, f"{base}/usage?{span}"
    yield alice.api, f"{base}/usage?from=0001-01-01&limit=1"
    now = SYSTEM_CLOCK.now()  # of days that are folded the records are not here
    lately = urlencode({"from": (now - timedelta(days=2)).isoformat(), "to": now.isoformat()})
    cursor = pagination.encoded([hour_text(now - timedelta(days=1)), "topic-007", 2, "boot-2"])
    for more in ("", "&limit=200", f"&limit=200&cursor={cursor}"):
        address = f"{base}/usage/records?{lately}{more}"
        assert alice.api.get(address).json()["next"]
        yield alice.api, address


def users_of(instance_id, hours):
    """Twenty users of an instance, who do something in each hour and on each broker."""
    now = SYSTEM_CLOCK.now()
    users_raise(
        user_row(
            instance_id, f"{now - timedelta(hours=hours - hour):%Y-%m-%dT%H}", f"user-{number:02}", 1000 * (hour + 1),
            boot=f"boot-{broker}", broker=broker,
        )
        for hour in range(hours)
        for broker in (1, 2, 3)
        for number in range(20)
    )  # fmt: skip


class WithinTheTest(folding.Django):
    """In the test's own transaction, whose isolation PostgreSQL cannot change any more: nobody else writes."""

    def run(self, cursor, statement, values=()):
        return 0 if statement.startswith("SET TRANSACTION ISOLATION LEVEL") else super().run(cursor, statement, values)


def fold_what_is_over():
    """As `days_fold` has done it with days that ended more than SLUICE_METERING_KEEP_DAYS ago."""
    runs = WithinTheTest()
    folded.begin(runs)
    until = SYSTEM_CLOCK.now() - timedelta(days=settings.ENVIRONMENT.metering_keep_days)
    assert folded.fold(runs, since="", until=hour_text(until.replace(hour=0)))
    while folded.sweep(runs, folded.NOBODY):
        pass


def last_month():
    return Month.of(Month.of(SYSTEM_CLOCK.now()).start - timedelta(days=1))


def _answers(address):
    if address.startswith(REFUSED):
        return (400,)
    return (
        (409,) if address.startswith("/api/") and address.endswith("/snippets") else (200, 302)
    )  # no broker here has given a route its address


class Cost(NamedTuple):
    """What a request for an address takes."""

    queries: int
    cpu_ms: float
    """The least of the rounds, of this thread."""
    clock_ms: float
    """The median of the rounds."""

    def is_too_much(self):
        clock_ms = 1000 * promised(MOST_MS / 1000)
        return self.queries >= MOST_QUERIES or self.cpu_ms >= MOST_MS or self.clock_ms >= clock_ms


def costs(addresses, rounds):
    """By address. Without rounds queries are counted, and no time is taken."""
    found = {}
    for client, address in addresses:
        warm = client.get(address)
        assert warm.status_code in _answers(address), (address, warm.status_code)
        with CaptureQueriesContext(connection) as queries:
            client.get(address).getvalue()  # what comes piece by piece is asked for meanwhile
        asked = len(queries)  # before the next request: Django forgets the queries of the one before
        cpu_ms, clock_ms = [0.0] * (not rounds), [0.0] * (not rounds)
        for _ in range(rounds):
            began, began_cpu = time.perf_counter(), time.thread_time()
            client.get(address).getvalue()
            cpu_ms.append(1000 * (time.thread_time() - began_cpu))
            clock_ms.append(1000 * (time.perf_counter() - began))
        found[address] = Cost(asked, min(cpu_ms), statistics.median(clock_ms))
    return found


def measured(alice, charlie, at_staff, admin, flow_master, crowd, instances, rounds):
    hours = 24
    if rounds:
        now = SYSTEM_CLOCK.now()
        hours = int((now - last_month().start).total_seconds()) // 3600 + 1
    (first, *others) = populate(
        alice.organisation, admin, flow_master, instances=instances, hours=hours, brokers_told=(1, 2, 3)
    )
    admin.messages.write(f"{first.removeprefix('ins-')}.topic-007", 0, b"a message")
    history(first, everything=bool(rounds))
    groups = lately([first, *others], first)
    assert groups >= GROUPS_OF_ALL * instances // 2000
    at_alice = Client()
    at_alice.force_login(alice.user)
    one = Instance.objects.for_organisation(alice.organisation).get(pk=first)
    RouteCertificate.objects.unscoped("a test").create(
        organisation=alice.organisation, instance=one, route=DEFAULT_ROUTE, chain="PEM", not_after=SYSTEM_CLOCK.now()
    )
    users_of(first, hours)
    alarms(one)
    loads(one)
    budgets(alice)
    quota_report(alice, first)
    provider_row(alice.organisation)
    crowd(one, instances)
    invoice_close(instance=one, month=last_month(), now=SYSTEM_CLOCK.now())
    for _ in range(200):
        note_row(alice.organisation)
    rule_id = throttle_rule(alice, first)
    User.objects.filter(pk=charlie.user.pk).update(is_staff=True)
    addresses = [
        *pages(alice, at_staff, first, rule_id), *lists(alice, first, rule_id), *operators_lists(charlie, first)
    ]  # fmt: skip
    if rounds:
        rows = UsageMaximum.objects.filter(hour__startswith=str(last_month())).count()
        assert rows >= 28 * 24 * 150
        print(f"{rows:,} rows of usage in {last_month()}")
        fold_what_is_over()
        addresses += usage_of_last_month(alice, at_alice, first)
    found = costs(addresses, rounds)
    assert found[f"/{PREFIX}instances"].queries > 0, "nothing was counted"
    return found


@pytest.fixture
def at_staff(db):
    user, _ = accounts.admin_ensure(email="admin@example.com", password=None)
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.timeout(400)
def test_no_page_and_no_list_asks_thirty_questions(alice, charlie, at_staff, admin, flow_master, crowd):
    found = measured(alice, charlie, at_staff, admin, flow_master, crowd, instances=200, rounds=0)
    assert {address: cost for address, cost in found.items() if cost.queries >= MOST_QUERIES} == {}


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_two_thousand_instances_are_quick_everywhere(alice, charlie, at_staff, admin, flow_master, crowd):
    found = measured(alice, charlie, at_staff, admin, flow_master, crowd, instances=2000, rounds=5)
    assert len(admin.topics) == 100_000
    slowest = sorted(found.items(), key=lambda item: -item[1].clock_ms)
    for address, cost in slowest:
        print(f"{cost.queries:3} queries {cost.cpu_ms:6.1f} ms CPU {cost.clock_ms:6.1f} ms  {address}")
    figures = {
        "at": moment(), "instances": 2000, "addresses": len(found), "clock_bound_ms": round(1000 * promised(MOST_MS / 1000)),
        "most_queries": max(cost.queries for cost in found.values()),
        "slowest": [{"address": address, **cost._asdict()} for address, cost in slowest[:SLOWEST]],
    }  # fmt: skip
    kept("scale", {connection.vendor: figures})
    assert {address: cost for address, cost in found.items() if cost.is_too_much()} == {}


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.skipif(connection.vendor == "postgresql", reason="all of this runs on PostgreSQL already")
def test_they_are_as_quick_on_postgresql(tmp_path):
    """By a run of the test above in a process whose database is there: settings choose it before any test begins."""
    if not postgresql.is_installed():
        pytest.skip("PostgreSQL is not installed")
    test = f"{__file__}::{test_two_thousand_instances_are_quick_everywhere.__name__}"
    with PostgreSQLServer(tmp_path / "postgresql", free_port()) as server:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-m", "long", "-p", "no:cacheprovider", test],
            env={**os.environ, "DATABASE_URL": server.database("sluice")},
            cwd=ROOT, capture_output=True, text=True, timeout=3000, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:]
