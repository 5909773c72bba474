"""Every page of the console by name, for the checks that look at all of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from .conftest import Console

EMPTY_ORGANISATION, ORGANISATION_BEING_DELETED = "org-quietbarn000", "org-oldmill00000"
"""Alice's, beside the one that all pages are of: world.py makes them."""
HANGS_AT = 3
"""The offset in partition 2 of `payments` from which on a transaction hangs."""
MEMBER = "billing-1-0b8f44d2-9f3e-4d6a-8f5b-2f1f2c1f9a01"


ANSWERS = {
    "nothing-here": 404,
    "prices-wrong": 422,
    "instance-snippets-wrong": 422,
    "instance-history-wrong": 422,
    "instance-broker-wrong": 422,
    "instance-what-if-wrong": 422,
    "fleet-credit-notes-wrong": 422,
}
"""What pages are answered with that are not as asked for; all others: 200."""


def visit(page: Page, name: str, address: str) -> None:
    """Open a page of the list. Fails where what comes is another one: the sign-in, or an error."""
    answer = page.goto(address)
    assert answer is not None
    assert answer.status == ANSWERS.get(name, 200), f"{name}: {answer.status}"
    assert answer.request.redirected_from is None, f"{name} leads to {answer.url}"


def strangers(console: Console) -> dict[str, str]:
    """Pages of whoever is not signed in."""
    known = {
        "landing": "/",
        "prices": "/prices",
        "prices-wrong": "/prices?plan=pro&bandwidth_mib_per_s=-1&storage_gib=&partitions=x",
        "sign-in": "/sign-in",
        "sign-in-sso": "/sign-in/sso",
        "sign-in-link": "/sign-in/link",
        "sign-up": "/sign-up",
        "password-forgotten": "/password/forgotten",
        "nothing-here": "/nothing",
    }
    known |= {"password-reset": console.links["reset"], "sign-in-browser": console.links["browser"]}
    return {**known, "invitation": console.invitation, "sign-up-confirm": console.sign_up}


def tenants(console: Console) -> dict[str, str]:
    """Pages of an organisation, as its owner sees them."""
    org = f"/{console.organisation}"
    one = f"{org}/instances/{console.instances['orders']}"
    return {
        "instances": f"{org}/instances",
        "instances-none-found": f"{org}/instances?q=nothing",
        "instances-critical": f"{org}/instances?health=critical&sort=health",
        "instance-names": f"{org}/instance-names",
        "instance-new": f"{org}/instances/new",
        "instance": one,
        "instance-snippets": f"{one}/snippets?topic=orders",
        "instance-snippets-wrong": f"{one}/snippets?topic=a+b",
        "alarms": f"{one}/alarms",
        "alarms-empty": f"{org}/instances/{console.instances['clickstream']}/alarms",
        "alarm-new": f"{one}/new-alarm",
        "alarm": f"{one}/alarms/alm-000000000001",
        "alarm-silenced": f"{one}/alarms/alm-000000000002",
        "receivers": f"{one}/receivers",
        "receiver": f"{one}/receivers/rcv-000000000001",
        "receiver-not-confirmed": f"{one}/receivers/rcv-000000000003",
        "timeline": f"{one}/timeline",
        "instance-settings": f"{one}/settings",
        "instance-config": f"{one}/config",
        "instance-policies": f"{one}/policies",
        "instance-prepaid": f"{one}/prepaid",
        "instance-elastic": f"{one}/elastic-bandwidth",
        "instance-policies-none": f"{org}/instances/{console.instances['clickstream']}/policies",
        "instance-delete": f"{one}/delete",
        "instance-isolated": f"{org}/instances/{console.instances['archive']}",
        "instance-isolated-settings": f"{org}/instances/{console.instances['archive']}/settings",
        "instance-isolated-delete": f"{org}/instances/{console.instances['archive']}/delete",
        "instance-access": f"{one}/access",
        "users": f"{one}/users",
        "users-none-found": f"{one}/users?q=nothing",
        "users-empty": f"{org}/instances/{console.instances['clickstream']}/users",
        "user-password": f"{one}/user-password/billing",
        "token-issuers": f"{one}/token-issuers",
        "acls": f"{one}/acls",
        "acls-empty": f"{org}/instances/{console.instances['clickstream']}/acls",
        "acl-rules": f"{one}/acl-rules",
        "acl-new": f"{one}/new-acl",
        "acl-preset": f"{one}/new-acls",
        "access-question": f"{one}/access-check",
        "access-answer": f"{one}/access-check?source=127.0.0.1&principal=User:ANONYMOUS&route=default&operation=WRITE"
        "&resource_type=TOPIC&resource_name=orders",
        "instance-audit": f"{one}/audit",
        "instance-audit-none-fits": f"{one}/audit?principal=nobody",
        "instance-audit-off": f"{org}/instances/{console.instances['clickstream']}/audit",
        "proposal": f"{one}/proposal",
        "proposal-empty": f"{org}/instances/{console.instances['clickstream']}/proposal",
        "route-new": f"{one}/new-route",
        "route": f"{one}/routes/default",
        "route-certificate": f"{one}/routes/default/certificate",
        "route-removal": f"{one}/routes/default/removal",
        "instance-quota": f"{one}/quota",
        "instance-quota-quiet": f"{org}/instances/{console.instances['clickstream']}/quota",
        "instance-leaders-spread": f"{one}/leaders/spread",
        "instance-quota-report": f"{one}/quota-report",
        "throttle-rules": f"{one}/throttle-rules",
        "throttle-rules-none-fits": f"{one}/throttle-rules?topic=nothing",
        "throttle-rules-none": f"{org}/instances/{console.instances['clickstream']}/throttle-rules",
        "instance-quota-report-empty": f"{org}/instances/{console.instances['clickstream']}/quota-report",
        "throttle-rule-new": f"{one}/new-throttle-rule",
        "throttle-rule-new-clients": f"{one}/new-throttle-rule?kind=client",
        "throttle-rule": f"{one}/throttle-rules/{console.rule}",
        "instance-history": f"{one}/history",
        "instance-history-day": f"{one}/history?range=24h",
        "instance-history-wrong": f"{one}/history?since=2026-01-02T00:00&until=2026-01-01T00:00",
        "instance-history-all": f"{one}/history?range=400d",
        "instance-broker": f"{one}/brokers/1/history",
        "instance-broker-day": f"{one}/brokers/1/history?range=24h",
        "instance-broker-wrong": f"{one}/brokers/1/history?since=2026-01-02T00:00&until=2026-01-01T00:00",
        "instance-history-empty": f"{org}/instances/{console.instances['clickstream']}/history?range=400d",
        "instance-usage": f"{one}/usage",
        "instance-usage-month": f"{one}/usage?month={datetime.now(UTC):%Y-%m}",
        "instance-usage-none": f"{one}/usage?day=2020-01-01",
        "usage-records": f"{one}/usage/{datetime.now(UTC):%Y-%m-%dT%H}",
        "instance-bill": f"{one}/bill",
        "instance-cost-topics": f"{one}/bill/topics",
        "instance-cost-users": f"{one}/bill/users",
        "instance-what-if": f"{one}/bill/what-if",
        "instance-what-if-asked": f"{one}/bill/what-if?ask=1&bandwidth_mib_per_s=5&plan=",
        "instance-what-if-wrong": f"{one}/bill/what-if?ask=1&bandwidth_mib_per_s=-5&plan=",
        "instance-cost-topics-none": f"{one}/bill/topics?month=2020-01",
        "instance-cost-users-none": f"{one}/bill/users?month=2020-01",
        "instance-bill-invoiced": f"{one}/bill?month={console.month}",
        "instance-bill-waiting": f"{org}/instances/{console.instances['clickstream']}/bill?month={console.month}",
        "invoice-verify": f"{org}/invoices/inv-00000001/verify",
        "palette": f"{org}/palette?q=ord",
        "palette-nothing-fits": f"{org}/palette?q=nothing-at-all",
        "search": f"{org}/search?q=ord",
        "search-of-one-kind": f"{org}/search?q=ord&kind=topic",
        "search-nothing-fits": f"{org}/search?q=nothing-at-all",
        "search-empty": f"{org}/search",
        "topics": f"{one}/topics",
        "topics-empty": f"{org}/instances/{console.instances['clickstream']}/topics",
        "topic-new": f"{one}/new-topic",
        "topic": f"{one}/topics/orders",
        "topic-access": f"{one}/topics/orders/access",
        "topic-figures": f"{one}/topics/orders/figures",
        "topic-configs": f"{one}/topics/orders/configs",
        "topic-note": f"{one}/topics/orders/note",
        "topic-schema": f"{one}/topics/orders/schemas/value",
        "topic-schema-of-keys": f"{one}/topics/orders/schemas/key",
        "topics-by-size": f"{one}/topics?sort=-stored_bytes",
        "topics-tagged": f"{one}/topics?tag=billing",
        "topics-configure": f"{one}/topic-configs",
        "topics-configure-none-fits": f"{one}/topic-configs?q=nothing",
        "topic-settings": f"{one}/topics/orders/settings",
        "topic-delete": f"{one}/topics/orders/delete",
        "topic-messages": f"{one}/topics/shipments.v2/messages",
        "topic-messages-live": f"{one}/topics/shipments.v2/messages?live=1",
        "topic-messages-none-fit": f"{one}/topics/shipments.v2/messages?text=nothing",
        "topic-messages-empty": f"{org}/instances/{console.instances['orders']}/topics/payments/messages?partition=2",
        "topic-message": f"{one}/topics/shipments.v2/messages/0/0",
        "topic-message-bytes": f"{one}/topics/shipments.v2/messages/2/0",
        "topic-message-new": f"{one}/topics/shipments.v2/messages/new",
        "topic-records-delete": f"{one}/topics/shipments.v2/delete-records",
        "groups": f"{one}/groups",
        "groups-empty": f"{org}/instances/{console.instances['clickstream']}/groups",
        "group": f"{one}/groups/billing",
        "group-expired": f"{one}/groups/audit",
        "groups-in-a-state": f"{one}/groups?state=Empty",
        "groups-by-lag": f"{one}/groups?by=lag",
        "group-new": f"{one}/group-new",
        "group-topic-delete": f"{one}/group-topics/audit/topic/orders",
        "group-offsets": f"{one}/group-offsets/billing",
        "group-delete": f"{one}/group-deletion/audit",
        "group-removal": f"{one}/group-members/billing/member/{MEMBER}",
        "instance-connections": f"{one}/connections",
        "instance-connections-empty": f"{org}/instances/{console.instances['clickstream']}/connections",
        "topic-talkers": f"{one}/topics/orders/talkers",
        "instance-mirrors-none": f"{one}/mirrors",
        "instance-loads": f"{one}/lake-loads",
        "instance-loads-empty": f"{org}/instances/{console.instances['clickstream']}/lake-loads",
        "instance-load-new": f"{one}/new-lake-load",
        "instance-load": f"{one}/lake-loads/load-000000000001",
        "instance-load-failed": f"{one}/lake-loads/load-000000000002",
        "instance-load-never-run": f"{one}/lake-loads/load-000000000003",
        "transactions": f"{one}/transactions",
        "transaction": f"{one}/transactions/order-copier",
        "hanging-transactions": f"{one}/hanging-transactions",
        "transaction-end": f"{one}/transaction-end/order-copier",
        "hanging-transaction-end": f"{one}/hanging-transactions/payments/2/{HANGS_AT}/end",
        "bills": f"{org}/bills",
        "statement": f"{org}/statement?month={console.month}",
        "statement-so-far": f"{org}/statement",
        "budgets": f"{org}/budgets",
        "budget-new": f"{org}/new-budget",
        "budget": f"{org}/budgets/bud-000000000001",
        "caps": f"{org}/caps",
        "operations": f"{org}/operations",
        "operation": f"{org}/operations/{console.operation}",
        "keys": f"{org}/keys",
        "roles": f"{org}/roles",
        "role": f"{org}/roles/rol-000000000001",
        "service-accounts": f"{org}/service-accounts",
        "service-account": f"{org}/service-accounts/svc-000000000001",
        "members": f"{org}/members",
        "sso": f"{org}/sso",
        "organisation-settings": f"{org}/settings",
        "organisation-deletion": f"{org}/deletion",
        "organisation-deletion-typed": f"/{EMPTY_ORGANISATION}/deletion",
        "organisation-being-deleted": f"/{ORGANISATION_BEING_DELETED}/deletion",
        "audit-log": f"{org}/audit",
        "audit-log-verify": f"{org}/audit/verify",
        "audit-log-none-fits": f"{org}/audit?q=nothing-at-all",
        "organisation-new": "/organisations/new",
        "account": "/account",
        "address-change": "/account/address",
        "address-confirm": console.links["change"],
        "passkeys": "/account/passkeys",
        "second-factor": "/account/second-factor",
        "sessions": "/account/sessions",
    }


def operators(console: Console) -> dict[str, str]:
    """Pages of the service's staff."""
    return {
        "fleet": "/fleet",
        "fleet-search": "/fleet/search?q=ord",
        "fleet-allocation": "/fleet/allocation",
        "fleet-quota-report": "/fleet/quota-report",
        "fleet-quota-report-none": "/fleet/quota-report?day=2020-01-01",
        "fleet-jobs": "/fleet/jobs",
        "fleet-jobs-of-one": "/fleet/jobs?job=quota_report",
        "fleet-metering": "/fleet/metering",
        "fleet-invoices": "/fleet/invoices",
        "fleet-credit-notes": "/fleet/credit-notes",
        "fleet-credit-notes-of-one": f"/fleet/credit-notes?organisation={console.organisation}&invoice=inv-00000001",
        "fleet-credit-notes-wrong": f"/fleet/credit-notes?organisation={console.organisation}&invoice=inv-99999999",
        "fleet-capacity": "/fleet/capacity",
        "fleet-clusters": "/fleet/clusters",
        "fleet-cluster": "/fleet/clusters/default",
        "fleet-heat": "/fleet/heat",
        "fleet-heat-trouble": "/fleet/heat?measure=isr&range=24h",
        "fleet-heat-instances": "/fleet/heat?of=instances",
        "fleet-heat-now": "/fleet/heat?of=now",
        "fleet-broker": "/fleet/clusters/default/brokers/1",
        "fleet-rebalancing": "/fleet/rebalancing",
        "fleet-by-itself": "/fleet/clusters/default/rebalancing",
        "fleet-rebalance": "/fleet/rebalancing/reb-000000000001",
        "fleet-rebalance-under-way": "/fleet/rebalancing/reb-000000000002",
        "fleet-organisation": f"/fleet/organisations/{console.organisation}",
        "fleet-organisation-being-deleted": f"/fleet/organisations/{ORGANISATION_BEING_DELETED}",
        "fleet-instance": f"/fleet/instances/{console.instances['orders']}",
    }
