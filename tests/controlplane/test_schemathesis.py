"""The REST API against the schema that it publishes: requests made from docs/openapi.yaml, valid ones and broken ones.

The requests go through the real WSGI application in this process, on top of the fake world of conftest.py. Ids in paths
are mostly real ones, or nothing but 404 would be seen; every request meets the same world, since what it did is taken
back afterwards, so that a failure is repeated by its request alone.

Checked are all of Schemathesis' rules (no 5xx, status codes, content types, headers and bodies as the schema says, data
that breaks the schema refused, a key asked for), but one has an exception: data that keeps to the schema is taken,
unless a rule that no schema can say refuses it by name (RULED).
"""

from __future__ import annotations

import dataclasses
import json
import random
from collections import Counter
from copy import deepcopy
from datetime import UTC, datetime

import pytest
import schemathesis
from django.conf import settings as installation
from django.db import transaction
from hypothesis import HealthCheck, settings
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import positive_data_acceptance

from controlplane.accounts import services as accounts
from controlplane.accounts.models import ApiKey, User
from controlplane.billing import closing
from controlplane.billing.pricing.rating import Month
from controlplane.core.models import Operation
from controlplane.env import REST_LIMITS, ROOT
from controlplane.tenants import invitations
from controlplane.tenants.models import Role
from controlplane.wsgi import application
from tests.support.evidence import kept, moment

from .admission.rows import change_row
from .alarms.rows import alarm_row, receiver_row
from .billing.rows import note_row
from .budgets.rows import budget_row
from .console.test_instance_pages import flowing
from .fakes import FakeGroup
from .loads.rows import load_row
from .rebalancing.rows import rebalance_row
from .rows import custom_role_row, service_account_row
from .sso.rows import provider_row
from .test_foreign_ids import member_row
from .token_issuers.rows import token_issuer_row

SCHEMA = schemathesis.openapi.from_path(str(ROOT / "docs" / "openapi.yaml"))
SCHEMA.app = application
# An address may carry parameters that nobody declared, as a proxy adds them; a body may not. The key is this test's.
SCHEMA.config.generation.update(allow_extra_parameters=False, with_security_parameters=False)
# A condition (If-Match) is compared where the thing is locked: before rules that need it, and so before a body's finer faults.
REJECTIONS = SCHEMA.config.checks.negative_data_rejection
REJECTIONS.expected_statuses = [*REJECTIONS.expected_statuses, "412"]

RULED = {
    "cursor": "only `next` of a page before is one",
    "definition": "a schema in its format",
    "message": "of Protobuf, and one that the schema has",
    "schema": "types that Spark has, as DDL or JSON",
    "cidrs": "no host bits beyond the prefix, at most 512 blocks",
    "add": "the same",
    "remove": "the same, and they are there",
    "addresses": "as cidrs, and at least one",
    "instances": "ids of instances",
    "expires_at": "in the future, at most ten years away",
    "whitelist": "the same",
    "config": "the brokers know their settings",
    "name": "printable; a topic's has letters that Kafka takes",
    "topics": "names of topics",
    "note": "printable",
    "description": "the same",
    "tags": "the same, without a comma or a space around",
    "tag": "no null character",
    "q": "not blank, no control characters",
    "users": "no null character",
    "clients": "the same",
    "groups": "the same",
    "from": "a moment, and not later than `to`",
    "to": "a moment",
    "step": "long enough for the range, and of whole rows",
    "step_s": "the same",
    "metrics": "those that there are",
    "month": "a month of the calendar",
    "accept_full_storage": "no change by itself",
    "confirm_price": "the same",
    "reason": "not blank",
    "value": "one where the strategy needs it, and none where it does not",
    "partitions": "of a topic that is named, and that has them",
    "strategy": "there is an offset to shift from",
    "dry_run": "in the address or in the body, where the body has a preview of its own",
    "password": "printable",
    "items": "principals, hosts and names of resources have rules of their own",
    "principal": "begins with User:",
    "source": "an address",
    "outcome": "no null character",
    "host": "an address or a block",
    "resource_name": "no null character",
    "topic": "the same",
    "group": "the same; of a consumer only",
    "mechanism": "of the route's",
    "route": "one that the instance has",
    "mechanisms": "each once; of a route where clients log in, and nowhere else",
    "allow_plain_in_clear": "of PLAIN or OAUTHBEARER without TLS",
    "issuer": "not blank",
    "label": "the same",
    "client_id": "the same",
    "client_secret": "needed where there is none of before",
    "audiences": "the same",
    "principal_claim": "the same",
    "scope": "the same",
    "jwks_url": "on a host that the operators have listed",
    "client_certificates": "inside TLS",
    "principal_mapping": "rules as Kafka writes them, of certificates",
    "advertised_host": "a name or an address",
    "advertised_hosts": "the same, by the ids of brokers",
    "closes_at": "in the future",
    "at": "the same, at most 30 days away, and not without a size",
    "prepaid_at_end": "of what is paid in advance",
    "cap_mib_per_s": "more than was bought, and at most twice as much",
    "budget_per_month": "above 0",
    "acls_added": "as items",
    "acls_removed": "no null character",
    "route_whitelists": "of routes that there are; as cidrs",
    "lasts_s": "no proposal by itself",
    "key": "base64",
    "headers": "the same",
    "chain": "PEM, not blank",
    "contains": "no null character",
    "key_contains": "the same",
    "partition": "one that the topic has",
    "offset": "of a partition that is named",
    "timestamp_ms": "not together with an offset",
    "start": "the same",
    "before": "offsets by partition",
    "comparison": "of a figure, and then needed",
    "threshold": "the same",
    "receivers": "that the instance has, each once; of a budget, that the organisation has",
    "amount": "above 0",
    "bandwidth_mib_per_s": "above 0, and not beyond what is sold",
    "storage_gib": "the same",
    "max_storage_gib": "not less than the instance has, and needed by a policy that buys storage",
    "placement": "apart from instances that the organisation has; in zones that there are",
    "plan": "sold in that month",
    "actual_percents": "each once",
    "forecast_percents": "the same",
    "instance_id": "no null character",
    "until": "in the future, at most 30 days away",
    "address": "a URL of a public host, or an e-mail address",
    "code": "the one that was sent",
    "email": "an address, without quotation marks, of nobody who is a member",
    "role": "the organisation keeps an owner; one of role and custom_role",
    "custom_role": "no null character",
    "step_down_to": "left out beside custom_role",
    "member_id": "of somebody else than the caller",
    "kinds": "those that there are",
    "kind": "a place that operators have set",
    "destination": "a place where a load may go",
    "format": "goes with `destination`",
    "bucket": "the name of one",
    "path": "a folder in a bucket",
    "region": "of a bucket, and of nothing else",
    "access_key": "the same, with its secret",
    "secret_key": "the same",
    "offsets": "ranges that have a length, one a partition",
    "after": "an entry that there is",
    "hash": "goes with `after`",
    "sort": "without `order`",
    "prefix": "no null character",
    "search": "the same",
    "cluster": "the same; needed where there are several",
    "organisation_id": "the same",
    "measure": "one that there is of `of`",
    "range": "the same",
    "name_prefix": "the same",
    "owner": "the same",
    "route_id": "the same",
    "user": "the same",
    "client": "the same",
    "last_used_before": "a moment",
    "zookeeper_hosts": "hosts with ports",
    "zones": "letters that a zone has",
}
RULED_AS_A_WHOLE = {
    "invalid_replication_factor",  # the cluster has fewer brokers
    "invalid_throttle_rule",  # what it limits and whom it names do not go together
    "invalid_token_issuer",  # printable, and a scope of one word
    "offset_out_of_range",  # the partition does not hold it
}
RULE = {"kind": "topic", "topics": ["orders"], "produce_mib_per_s": 1}
ACL = {"principal": "User:ann", "operation": "READ", "resource_type": "TOPIC", "resource_name": "orders"}
QUICK, LONG = 2, 250
FEW_OPERATIONS, LEAST_EACH = 20, 40
"""Of more operations than these so many requests each are made, on the average, by LONG: of one that takes nothing but a key ten
are all that there are, of most 250 to 310. So a run of all operations makes 10,000 at the least."""
OPERATORS = "operators"
"""The tag of what the service's operators alone may ask: their key asks it, or nothing behind the permission would be met.

Which of their data is refused by rules that no schema can say is not listed yet (RULED): of theirs that is not looked at."""


@pytest.fixture
def world(alice, charlie, instance, tree, admin, flow_master, tmp_path, monkeypatch):
    """What there is to be asked for, and the way back to it."""
    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps({"access_key_secret": "k" * 40}))
    changed = {"secrets_file": secrets, "rest_limits": dict.fromkeys(REST_LIMITS, 0)}
    changed |= {"lake_folders": "file:/lake", "lake_buckets": "aws", "metering_absent": ""}
    monkeypatch.setattr(installation, "ENVIRONMENT", dataclasses.replace(installation.ENVIRONMENT, **changed))
    access_key, _ = accounts.access_key_create(organisation=alice.organisation, user=alice.user, name="signed")
    alice.api.post(f"/api/v1/instances/{instance.id}/topics", {"name": "orders", "partitions": 1})
    rule = alice.api.post(f"/api/v1/instances/{instance.id}/throttle-rules", RULE).json()
    proposal = alice.api.put(f"/api/v1/instances/{instance.id}/proposal", {"whitelist": ["10.0.0.0/8"]}).json()
    flow_master.answers[instance.id] = flowing()
    alice.api.post(f"/api/v1/instances/{instance.id}/users", {"name": "ann"})
    alice.api.post(f"/api/v1/instances/{instance.id}/acls", ACL)
    invitation, _ = invitations.invitation_create(
        organisation=alice.organisation, inviter=alice.user, email="dora@example.com", role=Role.VIEWER
    )
    key = instance.id.removeprefix("ins-")
    admin.messages.write(f"{key}.orders", 0, b"a message")
    admin.groups.found[f"{key}.readers"] = FakeGroup({(f"{key}.orders", 0): 0})
    admin.transactions.begin(f"{key}.copier", (f"{key}.orders", 0))
    admin.transactions.hang((f"{key}.orders", 0), at=0)
    closing.invoice_close(instance=instance, month=Month(2026, 5), now=datetime(2026, 6, 2, tzinfo=UTC))
    provider_row(alice.organisation)
    real = {
        "organisation_id": instance.organisation_id,
        "instance_id": instance.id,
        "number": "inv-00000001",
        "note": note_row(alice.organisation).number_text,
        "topic": "orders",
        "part": "value",
        "partition": 0,
        "broker": 1,
        "job": "quota_report",
        "offset": 0,
        "operation_id": Operation.objects.for_organisation(alice.organisation).first().id,
        "rule_id": rule["id"],
        "proposal_id": proposal["id"],
        "route_id": alice.api.post(f"/api/v1/instances/{instance.id}/routes", {"security": "ssl"}).json()["id"],
        "group": "readers",
        "transactional_id": "copier",
        "member": "reader-1",
        "user": "ann",
        "change_id": change_row(instance).id,
        "issuer_id": token_issuer_row(instance).id,
        "alarm_id": alarm_row(instance).id,
        "load_id": load_row(instance).id,
        "budget_id": budget_row(alice.organisation).id,
        "receiver_id": receiver_row(instance).id,
        "rebalance_id": rebalance_row(instance.cluster).id,
        "loss_id": 1,
        "cluster": instance.cluster.name,
        "access_key_id": access_key.id,
        "role_id": custom_role_row(alice.organisation).id,
        "service_account_id": service_account_row(alice.organisation).id,
        "membership_id": member_row(alice.organisation).pk,
        "invitation_id": invitation.id,
        "key_id": ApiKey.objects.for_organisation(alice.organisation).first().id,
    }
    User.objects.filter(pk=charlie.user.pk).update(is_staff=True)
    world = World({OPERATORS: charlie.key}, alice.key, real, tree, admin)
    yield world
    print(f"{world.asked} requests")  # pytest -rP shows it


@pytest.fixture(scope="module")
def asked(request):
    """Requests by operation, as the long test counts them. Their sum is printed at the end whatever pytest captures, kept in
    var/reports/schemathesis.json, and large enough."""
    found = Counter()
    yield found
    operations, total = len(found), found.total()
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\n{total:,} requests by {operations} operations of {SCHEMA.statistic.operations.total}")
    kept("schemathesis", {label: {"requests": count, "at": moment()} for label, count in found.items()})
    assert operations <= FEW_OPERATIONS or total >= LEAST_EACH * operations


class World:
    def __init__(self, keys, key, real, tree, admin):
        """`keys` of operations with a tag, `key` of all others."""
        self.keys, self.key, self.real, self.tree, self.admin = keys, key, real, tree, admin
        self.asked = 0
        self.kept = (dict(tree.nodes), dict(admin.topics), deepcopy(admin.configs), deepcopy(admin.groups.found))
        self.logs = deepcopy(admin.groups.logs)

    def ask(self, case):
        """Send one request and check the answer; then be as before."""
        self._name_what_exists(case)
        try:
            with transaction.atomic():
                asking = next((self.keys[tag] for tag in case.operation.tags or () if tag in self.keys), self.key)
                key = {"Authorization": f"Bearer {asking}"}
                self.asked += 1
                response = case.call(headers=key)
                case.validate_response(response, headers=key, excluded_checks=[positive_data_acceptance])
                assert asking != self.key or is_taken(case, response), (
                    response.status_code,
                    response.text,
                    case.as_curl_command(),
                )
                transaction.set_rollback(True)
        finally:
            nodes, found, configs, groups = self.kept
            self.tree.nodes, self.admin.topics, self.admin.configs = dict(nodes), dict(found), deepcopy(configs)
            self.admin.groups.found = deepcopy(groups)
            self.admin.groups.logs = deepcopy(self.logs)

    def _name_what_exists(self, case):
        path = case.meta.components.get(ParameterLocation.PATH)
        if path is None or path.mode.is_negative or random.Random(repr(case.path_parameters)).random() < 0.1:
            return
        case.path_parameters = {name: self.real[name] for name in case.path_parameters}


def is_taken(case, response):
    """Data that keeps to the schema is not refused as malformed, unless one of the rules above says so."""
    if case.meta.generation.mode.is_negative or response.status_code not in (400, 413, 415, 422):
        return True
    if response.json()["code"] in RULED_AS_A_WHOLE:
        return True
    if isinstance(case.body, dict) and set(case.body) == {"reason"}:
        return response.json()["detail"].startswith("nothing to change")  # a reason alone gives nothing to do
    return {problem["field"].partition(".")[0] for problem in response.json().get("errors", [{"field": ""}])} <= set(
        RULED
    )


@SCHEMA.parametrize()
@settings(max_examples=QUICK, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_answers_keep_to_the_schema(case, world):
    world.ask(case)


@pytest.mark.long
@pytest.mark.timeout(1200)
@SCHEMA.parametrize()
@settings(max_examples=LONG, deadline=None, suppress_health_check=list(HealthCheck))
def test_answers_to_thousands_of_requests_keep_to_the_schema(case, world, asked):
    asked[case.operation.label] += 1
    world.ask(case)
