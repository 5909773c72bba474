"""What the console does, REST and the command line do: a row for each of its addresses.

The addresses come from the routes, so a new page fails here until it has a row, or a reason in WITHOUT. What a row names has to
be there: the operation in the published schema, the command in the program; and the command makes that call. A page that changes
something names a call that changes something.
"""

from __future__ import annotations

import ast
import inspect
import textwrap

import pytest

import controlplane.urls  # noqa: F401  # it knows the converters that the console's routes use
from controlplane.cli import operations as ops
from controlplane.console import urls

from .cli.test_dry_runs import commands
from .cli.test_every_endpoint import METHODS, document

SIGNING_IN = "a person signs in; a program has a key"
OF_A_PERSON = "an account's own: a key must not be able to do it (docs/subsystems/rest.md, What is for people)"
OF_THE_CONSOLE = "how pages look, or how one finds one's way between them"
HELP = "text for people"
WITHOUT = {
    "home": OF_THE_CONSOLE,
    "palette": OF_THE_CONSOLE,
    "fleet_search": OF_THE_CONSOLE,
    "theme": OF_THE_CONSOLE,
    "language": OF_THE_CONSOLE,
    "prices": HELP,
    "api_docs": HELP,
    **dict.fromkeys(
        (
            "sign_up", "sign_up_confirm", "sign_in", "sign_in_code", "sign_in_passkey", "passkey_challenge", "sign_in_sso",
            "sso_back", "sign_out", "password_forgotten", "password_reset", "sign_in_link", "sign_in_browser",
        ),
        SIGNING_IN,
    ),
    **dict.fromkeys(
        (
            "account", "address_change", "address_send", "address_confirm", "sessions", "passkeys", "second_factor",
            "second_factor_demand", "invitation", "organisation_new",
        ),
        OF_A_PERSON,
    ),
}  # fmt: skip
"""Addresses that REST has nothing for, and why."""

ROWS = {
    # Operators of the service.
    "fleet": {
        "fleet_instances_get": "fleet instances",
        "fleet_brokers_get": "fleet brokers",
        "fleet_problems_get": "fleet problems",
    },
    "fleet_allocation": {"fleet_instances_item_get": "fleet instance"},
    "fleet_quota_report": {"quota_report_get": "fleet quota-report"},
    "fleet_jobs": {"jobs_get": "job list", "jobs_runs_get": "job runs", "jobs_runs_post": "job run"},
    "fleet_metering": {
        "metering_get": "usage metering",
        "metering_brokers_get": "metering brokers",
        "metering_brokers_waiver_post": "metering waive-broker",
        "metering_losses_get": "metering losses",
        "metering_losses_settle_post": "metering settle",
        "metering_caps_get": "metering caps",
        "metering_caps_post": "metering cap",
        "metering_reconciliations_get": "metering reconciliations",
        "metering_differences_get": "metering differences",
        "metering_fold_get": "metering fold",
    },
    "fleet_invoices": {
        "metering_months_get": "metering months",
        "metering_waivers_get": "metering waivers",
        "metering_waivers_post": "metering waive",
        "fleet_problems_get": "fleet problems",
        "taxes_get": "fleet taxes",
    },
    "fleet_credit_notes": {
        "organisations_invoices_credit_notes_get": "fleet credit",
        "organisations_invoices_credit_notes_post": "fleet give-credit",
    },
    "fleet_credit_note_pdf": {"organisations_credit_notes_pdf_get": "fleet credit-note-pdf"},
    "fleet_capacity": {
        "capacity_get": "fleet capacity",
        "capacity_put": "fleet set-capacity",
        "fleet_organisations_get": "fleet organisations",
    },
    "fleet_organisation": {"organisations_caps_get": "fleet caps", "organisations_caps_patch": "fleet set-caps"},
    "fleet_clusters": {"clusters_get": "cluster list", "clusters_post": "cluster register"},
    "fleet_cluster": {
        "clusters_item_get": "cluster show",
        "clusters_item_patch": "cluster change",
        "clusters_events_get": "cluster events",
        "clusters_leaving_get": "cluster leaving",
    },
    "fleet_broker": {
        "clusters_brokers_item_get": "cluster broker",
        "clusters_brokers_history_get": "cluster broker-history",
        "fleet_heat_get": "fleet heat",
    },
    "fleet_by_itself": {
        "clusters_rebalancing_get": "cluster rebalancing",
        "clusters_rebalancing_patch": "cluster set-rebalancing",
    },
    "fleet_heat": {"fleet_heat_get": "fleet heat"},
    "fleet_rebalancing": {
        "balance_get": "cluster balance",
        "rebalances_get": "rebalance list",
        "rebalances_post": "rebalance propose",
    },
    "fleet_rebalance": {
        "rebalances_item_get": "rebalance show",
        "rebalances_item_patch": "rebalance pace",
        "rebalances_actions_post": "rebalance act",
        "rebalances_moves_get": "rebalance moves",
        "rebalances_events_get": "rebalance events",
    },
    "fleet_rebalance_now": {"rebalances_item_get": "rebalance show"},
    "fleet_brokers": {"fleet_brokers_get": "fleet brokers"},
    "fleet_instance": {"fleet_instances_item_get": "fleet instance", "neighbours_get": "fleet neighbours"},
    "fleet_live": {"fleet_instances_item_get": "fleet instance"},
    # Instances.
    "instances": {"instances_get": "instance list"},
    "instance_names": {"instance_names_get": "instance names"},
    "instance_new": {"instances_post": "instance create", "zones_get": "instance zones"},
    "instance_estimate": {"instances_post": "instance create", "prepaid_price_get": "prepaid price"},  # its dry run
    "instance": {"instances_item_get": "instance show", "instances_routes_get": "route list"},
    "instance_status": {"instances_item_get": "instance show"},
    "instance_health": {"instances_item_get": "instance show"},
    "instance_live": {"instances_allocation_get": "quota allocation"},
    "instance_history": {
        "instances_history_get": "instance history",
        "instances_brokers_history_get": "instance broker-history",
        "instances_requests_get": "instance requests",
    },
    "instance_broker": {"instances_brokers_history_get": "instance broker-history"},
    "instance_events": {"instances_events_get": "instance events"},
    "instance_settings": {
        "instances_item_patch": "instance resize",
        "instances_scheduled_changes_get": "instance scheduled",
        "instances_scheduled_changes_post": "instance resize",
    },
    "change_cancel": {"instances_scheduled_changes_item_delete": "instance unschedule"},
    "instance_config": {"instances_item_patch": "instance config"},
    "instance_policies": {"instances_policies_get": "policy show", "instances_policies_disk_put": "policy disk"},
    "instance_prepaid": {
        "instances_prepaid_get": "prepaid show",
        "instances_prepaid_post": "prepaid begin",
        "instances_prepaid_patch": "prepaid set",
        "instances_prepaid_renew_post": "prepaid renew",
    },
    "instance_elastic": {
        "instances_elastic_bandwidth_get": "elastic show",
        "instances_elastic_bandwidth_put": "elastic set",
    },
    "instance_delete": {"instances_item_delete": "instance delete", "instances_destroy_post": "instance delete"},
    "instance_restore": {"instances_restore_post": "instance restore"},
    # Quota.
    "instance_quota": {
        "instances_allocation_get": "quota allocation",
        "instances_throttling_get": "quota throttling",
        "instances_throttling_reasons_get": "quota why",
        "instances_neighbours_get": "quota neighbours",
        "instances_guarantee_get": "quota guarantee",
        "instances_throttle_rules_get": "rule list",
    },
    "instance_quota_now": {"instances_allocation_get": "quota allocation"},
    "leaders_spread": {"instances_leaders_spread_post": "quota spread"},
    "instance_quota_report": {"instances_quota_report_get": "quota report"},
    "throttle_rules": {"instances_throttle_rules_get": "rule list"},
    "throttle_rule_new": {"instances_throttle_rules_post": "rule create"},
    "throttle_rule": {
        "instances_throttle_rules_item_get": "rule show",
        "instances_throttle_rules_item_patch": "rule alter",
    },
    "throttle_rule_delete": {"instances_throttle_rules_item_delete": "rule delete"},
    # Alarms.
    "alarms": {"instances_alarms_get": "alarm list"},
    "alarm_new": {"instances_alarms_post": "alarm create"},
    "alarm": {
        "instances_alarms_item_get": "alarm show",
        "instances_alarms_item_patch": "alarm alter",
        "instances_alarms_events_get": "alarm history",
    },
    "alarm_silence": {"instances_alarms_silence_post": "alarm silence"},
    "alarms_silence": {"instances_silence_post": "alarm silence-all"},
    "alarm_delete": {"instances_alarms_item_delete": "alarm delete"},
    "receivers": {"instances_receivers_get": "alarm receiver list", "instances_receivers_post": "alarm receiver add"},
    "receiver": {
        "instances_receivers_item_get": "alarm receiver show",
        "instances_receivers_item_patch": "alarm receiver alter",
        "instances_receivers_messages_get": "alarm receiver messages",
        "instances_receivers_confirm_post": "alarm receiver confirm",
        "instances_receivers_secret_post": "alarm receiver rotate",
    },
    "receiver_test": {"instances_receivers_test_post": "alarm receiver test"},
    "receiver_delete": {"instances_receivers_item_delete": "alarm receiver delete"},
    # Who comes in, and may do what.
    "instance_access": {
        "instances_item_get": "instance whitelist",
        "instances_whitelist_put": "instance whitelist",
        "instances_whitelist_patch": "instance whitelist",
    },
    "access_question": {"instances_access_check_post": "access check"},
    "proposal": {
        "instances_proposal_get": "access proposal show",
        "instances_proposal_put": "access proposal make",
        "instances_proposal_delete": "access proposal discard",
        "instances_proposal_in_force_post": "access proposal apply",
    },
    "instance_audit": {"instances_audit_get": "access audit", "instances_item_patch": "instance config"},
    "users": {"instances_users_get": "access user list", "instances_users_post": "access user add"},
    "user_password": {"instances_users_password_put": "access user password"},
    "user_delete": {"instances_users_item_delete": "access user remove"},
    "token_issuers": {
        "instances_token_issuers_get": "access issuer list",
        "instances_token_issuers_post": "access issuer add",
    },
    "token_issuer_refresh": {"instances_token_issuers_refresh_post": "access issuer refresh"},
    "token_issuer_delete": {"instances_token_issuers_item_delete": "access issuer remove"},
    "acls": {"instances_acls_get": "access acl list"},
    "acl_rules": {"instances_item_patch": "instance config"},
    "acl_new": {"instances_acls_post": "access acl add"},
    "acl_preset": {"instances_acls_presets_post": "access acl preset"},
    "acl_delete": {"instances_acls_delete": "access acl remove"},
    "route_new": {"instances_routes_post": "route create"},
    "route": {"instances_routes_item_get": "route show", "instances_routes_item_patch": "route alter"},
    "instance_ca": {"instances_ca_get": "instance ca"},
    "route_certificate": {
        "instances_routes_certificate_get": "route certificate",
        "instances_routes_certificate_put": "route certificate",
        "instances_routes_certificate_delete": "route certificate",
        "instances_routes_client_ca_put": "route client-ca",
    },
    "route_removal": {"instances_routes_item_delete": "route delete"},
    # Usage and bills of an instance.
    "instance_usage": {"instances_usage_get": "usage hours"},
    "usage_records": {"instances_usage_records_get": "usage records"},
    "instance_bill": {"instances_bill_get": "bill show", "instances_cost_get": "cost show"},
    "instance_what_if": {"instances_what_if_get": "cost what-if"},
    "instance_cost_topics": {"instances_cost_topics_get": "cost topics"},
    "instance_cost_users": {"instances_cost_users_get": "cost users"},
    # Topics and messages.
    "topics": {"instances_topics_get": "topic list"},
    "topic_new": {"instances_topics_post": "topic create"},
    "topics_configure": {"instances_topic_configs_post": "topic configure"},
    "topic": {"instances_topics_item_get": "topic show", "instances_topics_history_get": "topic history"},
    "topic_figures": {"instances_topics_figures_get": "topic figures"},
    "topic_configs": {"instances_topics_configs_get": "topic configs"},
    "topic_note": {"instances_topics_note_patch": "topic note"},
    "topic_talkers": {"instances_talkers_get": "connections talkers"},
    "topic_access": {"instances_topics_whitelist_put": "topic whitelist"},
    "topic_settings": {"instances_topics_item_patch": "topic alter"},
    "topic_delete": {"instances_topics_item_delete": "topic delete"},
    "topic_messages": {"instances_topics_messages_get": "message list"},
    "topic_messages_tail": {"instances_topics_messages_get": "message tail"},
    "topic_messages_search": {"instances_topics_messages_get": "message list"},
    "topic_message_new": {"instances_topics_messages_post": "message produce"},
    "topic_message": {"instances_topics_messages_item_get": "message show"},
    "topic_schema": {
        "instances_topics_schemas_get": "message schema list",
        "instances_topics_schemas_item_put": "message schema set",
        "instances_topics_schemas_item_delete": "message schema delete",
    },
    "topic_records_delete": {"instances_topics_delete_records_post": "message delete"},
    # Groups, connections, mirrors, loads, transactions.
    "groups": {"instances_groups_get": "group list"},
    "group_new": {"instances_groups_post": "group create"},
    "group": {"instances_groups_item_get": "group show", "instances_groups_history_get": "group history"},
    "group_reset": {"instances_groups_offsets_post": "group reset-offsets"},
    "group_topic_delete": {"instances_groups_topics_item_delete": "group delete-offsets"},
    "group_delete": {"instances_groups_item_delete": "group delete"},
    "group_removal": {"instances_groups_members_item_delete": "group remove-member"},
    "instance_snippets": {"instances_snippets_get": "instance snippet"},
    "search": {"search_get": "search"},
    "instance_connections": {
        "instances_connections_get": "connections list",
        "instances_refused_connections_get": "connections refused",
        "instances_talkers_get": "connections talkers",
    },
    "instance_mirrors": {"instances_mirrors_get": "mirror list"},
    "instance_loads": {"instances_lake_loads_get": "load list", "instances_lake_tables_get": "load tables"},
    "instance_load_new": {"instances_lake_loads_post": "load create"},
    "instance_load": {
        "instances_lake_loads_item_get": "load show",
        "instances_lake_loads_item_patch": "load update",
        "instances_lake_loads_runs_get": "load runs",
        "instances_lake_loads_runs_post": "load run",
    },
    "instance_load_stop": {"instances_lake_loads_stop_post": "load stop"},
    "instance_load_delete": {"instances_lake_loads_item_delete": "load delete"},
    "instance_table_remove": {"instances_lake_tables_item_delete": "load remove-table"},
    "transactions": {"instances_transactions_get": "transactions list"},
    "transaction": {"instances_transactions_item_get": "transactions show"},
    "transaction_end": {"instances_transactions_item_delete": "transactions end"},
    "hanging_transactions": {"instances_hanging_transactions_get": "transactions hanging"},
    "hanging_transaction_end": {"instances_hanging_transactions_item_delete": "transactions end-hanging"},
    # The organisation.
    "operations": {"operations_get": "operation list"},
    "operation": {"operations_item_get": "operation show"},
    "operation_steps": {"operations_item_get": "operation show"},
    "bills": {
        "invoices_get": "bill invoices",
        "credit_notes_get": "bill credit-notes",
        "cost_get": "cost total",
        "cost_instances_list": "cost instances",
        "plan_get": "bill plan",
    },
    "statement": {"statement_get": "bill statement"},
    "statement_pdf": {"statement_pdf_get": "bill statement-pdf"},
    "statement_focus": {"statement_focus_get": "bill statement-focus"},
    "budgets": {"budgets_get": "budget list"},
    "budget_new": {"budgets_post": "budget create"},
    "budget": {
        "budgets_item_get": "budget show",
        "budgets_item_patch": "budget alter",
        "budgets_alerts_get": "budget history",
    },
    "budget_delete": {"budgets_item_delete": "budget delete"},
    "invoice_pdf": {"invoices_pdf_get": "bill pdf", "invoices_item_get": "bill invoice"},
    "invoice_focus": {"invoices_focus_get": "bill focus"},
    "invoice_verify": {"invoices_verify_post": "bill verify"},
    "credit_note_pdf": {"credit_notes_pdf_get": "bill credit-note-pdf", "credit_notes_item_get": "bill credit-note"},
    "credit_note_focus": {"credit_notes_focus_get": "bill credit-note-focus"},
    "plan": {"plan_choose": "bill choose-plan"},
    "caps": {"caps_get": "caps"},
    "keys": {
        "api_keys_get": "key list",
        "api_keys_post": "key create",
        "access_keys_get": "access-key list",
        "access_keys_post": "access-key create",
    },
    "key_rotate": {"api_keys_rotate_post": "key rotate"},
    "key_revoke": {"api_keys_item_delete": "key revoke"},
    "access_key_revoke": {"access_keys_item_delete": "access-key revoke"},
    "roles": {"roles_get": "role list", "roles_post": "role create"},
    "role": {"roles_item_get": "role show", "roles_item_patch": "role change"},
    "role_delete": {"roles_item_delete": "role delete"},
    "service_accounts": {"service_accounts_get": "service-account list", "service_accounts_post": "service-account create"},
    "service_account": {
        "service_accounts_item_get": "service-account show",
        "service_accounts_item_patch": "service-account change",
        "service_accounts_keys_get": "service-account keys",
    },
    "service_account_key": {"service_accounts_keys_post": "service-account key"},
    "service_account_switch": {"service_accounts_item_patch": "service-account disable"},
    "service_account_delete": {"service_accounts_item_delete": "service-account delete"},
    "organisation_audit": {"audit_get": "audit"},
    "organisation_audit_file": {"audit_file_get": "audit"},
    "organisation_audit_verify": {"audit_verify_get": "audit-verify"},
    "organisation_sso": {
        "sso_get": "sso show",
        "sso_put": "sso set",
        "sso_patch": "sso alter",
        "sso_delete": "sso remove",
    },
    "organisation_settings": {
        "organisations_item_get": "organisation show",
        "organisations_item_patch": "organisation rename",
        "organisations_transfer_post": "organisation transfer",
    },
    "organisation_deletion": {
        "organisations_deletion_get": "organisation obstacles",
        "organisations_deletion_post": "organisation delete",
    },
    "members": {"members_get": "member list", "invitations_get": "invitation list", "invitations_post": "member invite"},
    "invitation_withdraw": {"invitations_item_delete": "invitation withdraw"},
    "member_role": {"members_item_get": "member show", "members_item_patch": "member role"},
    "member_remove": {"members_item_delete": "member remove"},
}  # fmt: skip
"""By the name of an address: the operations that give what it shows and does, each with the command that makes that call."""

NAMES = [route.name for route in urls.urlpatterns]
COMMANDS = {" ".join(words): command for words, command in commands().items()}


def calls():
    """Published operations by their ids."""
    for path, item in document()["paths"].items():
        for method in METHODS & set(item):
            yield item[method]["operationId"], ops.Call(method.upper(), path.removeprefix(ops.PREFIX))


PUBLISHED = dict(calls())


def methods_of(view):
    """Which methods a page takes, as its decorator says."""
    while view is not None:
        code = getattr(view, "__code__", None)
        if code is not None and "request_method_list" in code.co_freevars:
            return set(view.__closure__[code.co_freevars.index("request_method_list")].cell_contents)
        view = getattr(view, "__wrapped__", None)
    raise AssertionError("a page that does not say which methods it takes")


def calls_of(command):
    """The calls that a command's function names, and the functions of its module that it calls, in turn."""
    function = inspect.unwrap(command.callback)
    module = inspect.getmodule(function)
    left, seen, found = [function], set(), set()
    while left:
        function = left.pop()
        seen.add(function)
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ops":
                found.add(getattr(ops, node.attr))
            helper = getattr(module, node.id, None) if isinstance(node, ast.Name) else None
            if inspect.isfunction(helper) and helper.__module__ == module.__name__ and helper not in seen:
                left.append(helper)
    return found


def test_every_address_of_the_console_has_a_row_or_a_reason():
    assert set(NAMES) == set(ROWS) | set(WITHOUT)
    assert set(ROWS) & set(WITHOUT) == set()


@pytest.mark.parametrize("name", sorted(ROWS))
def test_what_a_row_names_is_there_and_the_command_makes_the_call(name):
    assert ROWS[name]
    for operation, words in ROWS[name].items():
        assert operation in PUBLISHED, f"{operation} is not published"
        assert words in COMMANDS, f"there is no sluice {words}"
        assert PUBLISHED[operation] in calls_of(COMMANDS[words]), f"sluice {words} does not call {operation}"


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_page_that_changes_something_has_a_call_that_does(name):
    (route,) = [route for route in urls.urlpatterns if route.name == name]
    if "POST" in methods_of(route.callback):
        assert any(PUBLISHED[operation].is_change for operation in ROWS[name])


def test_every_operation_is_of_a_page_or_says_why_not():
    of_pages = {operation for row in ROWS.values() for operation in row}
    assert set(PUBLISHED) - of_pages == set(NO_PAGE)


ONE_BY_ONE = "a page shows it among others"
NO_PAGE = {
    "me_get": "whom a key speaks for",
    "metrics_get": "for Prometheus",
    "instances_metrics_get": "for Prometheus",
    "instances_prometheus_get": "for Prometheus",
    "instances_scrape_config_get": "for Prometheus",
    "instances_limits_put": "operators set it by the command line",
    "fleet_operations_get": "operators look for them by the command line",
    "instances_acls_batch_post": "many at once: a file, for programs",
    "instances_users_delete": "the same as DELETE of the user's own address",
    "instances_users_item_get": ONE_BY_ONE,
    "instances_token_issuers_item_get": ONE_BY_ONE,
    "instances_scheduled_changes_item_get": ONE_BY_ONE,
}
"""Operations that no page of the console stands for, and why."""
