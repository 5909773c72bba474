"""Addresses of the console. A tenant's begin with the organisation, then the instance."""

from __future__ import annotations

from django.urls import path

from controlplane.console.views import (
    accounts,
    bills,
    caps,
    fleet,
    groups,
    instances,
    keys,
    live,
    members,
    metering,
    operations,
    quota,
    topics,
    whitelists,
)

app_name = "console"

ORG = "<id:organisation_id>"
INSTANCE = f"{ORG}/instances/<id:instance_id>"
TOPIC = f"{INSTANCE}/topics/<str:topic>"

urlpatterns = [
    path("", accounts.home, name="home"),
    path("sign-up", accounts.sign_up, name="sign_up"),
    path("sign-in", accounts.sign_in, name="sign_in"),
    path("sign-out", accounts.sign_out, name="sign_out"),
    path("theme", accounts.theme, name="theme"),
    path("organisations/new", members.organisation_new, name="organisation_new"),
    path("fleet", fleet.overview, name="fleet"),
    path("fleet/allocation", fleet.allocation, name="fleet_allocation"),
    path("fleet/metering", metering.shown, name="fleet_metering"),
    path("fleet/invoices", fleet.invoices, name="fleet_invoices"),
    path("fleet/capacity", caps.capacity, name="fleet_capacity"),
    path("fleet/organisations/<id:owner_id>", caps.organisation, name="fleet_organisation"),
    path("fleet/brokers", fleet.brokers, name="fleet_brokers"),
    path("fleet/instances/<id:instance_id>", fleet.instance, name="fleet_instance"),
    path("fleet/instances/<id:instance_id>/live", live.of_operators, name="fleet_live"),
    path(f"{ORG}/instances", instances.listed, name="instances"),
    path(f"{ORG}/instances/new", instances.new, name="instance_new"),
    path(f"{ORG}/instances/estimate", instances.estimate, name="instance_estimate"),
    path(INSTANCE, instances.shown, name="instance"),
    path(f"{INSTANCE}/status", instances.status, name="instance_status"),
    path(f"{INSTANCE}/health", instances.health, name="instance_health"),
    path(f"{INSTANCE}/live", live.of_tenant, name="instance_live"),
    path(f"{INSTANCE}/quota", quota.shown, name="instance_quota"),
    path(f"{INSTANCE}/quota/now", quota.now, name="instance_quota_now"),
    path(f"{INSTANCE}/settings", instances.settings, name="instance_settings"),
    path(f"{INSTANCE}/config", instances.config, name="instance_config"),
    path(f"{INSTANCE}/delete", instances.delete, name="instance_delete"),
    path(f"{INSTANCE}/access", whitelists.of_instance, name="instance_access"),
    path(f"{INSTANCE}/usage", bills.usage, name="instance_usage"),
    path(f"{INSTANCE}/usage/<str:hour>", bills.records, name="usage_records"),
    path(f"{INSTANCE}/bill", bills.bill, name="instance_bill"),
    path(f"{INSTANCE}/topics", topics.listed, name="topics"),
    path(f"{INSTANCE}/new-topic", topics.new, name="topic_new"),
    path(TOPIC, topics.shown, name="topic"),
    path(f"{TOPIC}/access", whitelists.of_topic, name="topic_access"),
    path(f"{TOPIC}/settings", topics.settings, name="topic_settings"),
    path(f"{TOPIC}/delete", topics.delete, name="topic_delete"),
    path(f"{INSTANCE}/groups", groups.listed, name="groups"),
    path(f"{INSTANCE}/groups/<name:group>", groups.shown, name="group"),
    path(f"{INSTANCE}/group-offsets/<name:group>", groups.reset, name="group_reset"),
    path(f"{INSTANCE}/group-deletion/<name:group>", groups.delete, name="group_delete"),
    path(f"{INSTANCE}/group-members/<name:group>/member/<name:member>", groups.removal, name="group_removal"),
    path(f"{ORG}/operations", operations.listed, name="operations"),
    path(f"{ORG}/operations/<id:operation_id>", operations.shown, name="operation"),
    path(f"{ORG}/operations/<id:operation_id>/steps", operations.steps, name="operation_steps"),
    path(f"{ORG}/bills", bills.listed, name="bills"),
    path(f"{ORG}/invoices/<id:number>/verify", bills.verify, name="invoice_verify"),
    path(f"{ORG}/plan", bills.plan, name="plan"),
    path(f"{ORG}/caps", caps.shown, name="caps"),
    path(f"{ORG}/keys", keys.listed, name="keys"),
    path(f"{ORG}/keys/<id:key_id>/revoke", keys.revoke, name="key_revoke"),
    path(f"{ORG}/members", members.listed, name="members"),
    path(f"{ORG}/members/<int:membership_id>/role", members.role, name="member_role"),
    path(f"{ORG}/members/<int:membership_id>/remove", members.remove, name="member_remove"),
]
