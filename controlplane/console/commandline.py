"""What a person types to do by the command line what a page does. Pure; docs/subsystems/cli.md is about the program.

One table by the names of addresses. Numbers and names that the page asks for have examples in them; what the address says is
filled in, quoted for a shell. tests/controlplane/console/test_commands.py parses every one with the program itself.
"""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from controlplane.console.calendar import DAY, HOUR, MONTH, span_of
from controlplane.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAM = "sluice"
NOTHING: Mapping[str, str] = MappingProxyType({})
_I = "instance_id"

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "instances": ("instance list",),
    "instance_names": ("instance names",),
    "instance_new": ("instance create --bandwidth 5 --storage 10 --partitions 60 --cidr 10.0.0.0/8 my-instance",),
    "instance": ("instance show", _I),
    "instance_snippets": ("instance snippet --client kcat", _I),
    "instance_quota": ("quota allocation", _I),
    "leaders_spread": ("quota spread", _I),
    "instance_quota_report": ("quota report", _I),
    "throttle_rules": ("rule list", _I),
    "throttle_rule_new": ("rule create --produce 1 --topic my-topic", _I, "=topic"),
    "throttle_rule": ("rule show", _I, "rule_id"),
    "instance_history": ("instance history", _I),
    "instance_broker": ("instance broker-history", _I, "broker"),
    "alarms": ("alarm list", _I),
    "alarm_new": (
        "alarm create --comparison at_least --threshold 90 --duration 300",
        _I,
        "=storage",
        "=storage_used_percent",
    ),
    "alarm": ("alarm history", _I, "alarm_id"),
    "receivers": ("alarm receiver list", _I),
    "receiver": ("alarm receiver messages", _I, "receiver_id"),
    "instance_events": ("instance events", _I),
    "instance_settings": ("instance resize --bandwidth 10", _I),
    "instance_policies": ("policy show", _I),
    "instance_prepaid": ("prepaid show", _I),
    "instance_elastic": ("elastic show", _I),
    "instance_config": ("instance config --default-partitions 6", _I),
    "instance_delete": ("instance delete", _I),
    "instance_access": ("instance whitelist", _I),
    "access_question": (
        "access check --source 10.0.0.7 --operation READ --resource-type TOPIC --resource-name my-topic",
        _I,
    ),
    "proposal": ("access proposal show", _I),
    "instance_audit": ("access audit", _I),
    "users": ("access user list", _I),
    "user_password": ("access user password", _I, "user"),
    "token_issuers": ("access issuer list", _I),
    "acls": ("access acl list", _I),
    "acl_rules": ("instance config --no-allow-everyone-if-no-acl-found", _I),
    "acl_new": (
        "access acl add --principal User:my-app --operation READ --resource-type TOPIC --resource-name my-topic",
        _I,
    ),
    "acl_preset": ("access acl preset --principal User:my-app --topic my-topic", _I, "=producer"),
    "route_new": ("route create --security sasl_ssl --mechanism SCRAM-SHA-512", _I),
    "route": ("route show", _I, "route_id"),
    "route_certificate": ("route certificate", _I, "route_id"),
    "route_removal": ("route delete", _I, "route_id"),
    "instance_usage": ("usage hours", _I),
    "usage_records": ("usage records", _I),
    "instance_bill": ("bill show", _I),
    "instance_what_if": ("cost what-if", _I),
    "instance_cost_topics": ("cost topics", _I),
    "instance_cost_users": ("cost users", _I),
    "topics": ("topic list", _I),
    "topic_new": ("topic create --partitions 6", _I, "=my-topic"),
    "topic": ("topic show", _I, "topic"),
    "topic_figures": ("topic figures", _I, "topic"),
    "topic_configs": ("topic configs", _I, "topic"),
    "topic_note": ("topic note --note my-text --tag my-tag", _I, "topic"),
    "topics_configure": (
        "topic configure --config retention.ms=86400000 --dry-run",
        _I,
        "=my-topic",
        "=my-other-topic",
    ),
    "topic_talkers": ("connections talkers", _I, "topic"),
    "topic_access": ("topic whitelist", _I, "topic"),
    "topic_settings": ("topic alter --config retention.ms=86400000", _I, "topic"),
    "topic_delete": ("topic delete", _I, "topic"),
    "topic_messages": ("message list", _I, "topic"),
    "topic_message": ("message show", _I, "topic", "partition", "offset"),
    "topic_message_new": ("message produce --key my-key --value my-text", _I, "topic"),
    "topic_schema": ("message schema set --format avro --file my-schema.avsc", _I, "topic", "part"),
    "topic_records_delete": ("message delete --before 0:end --dry-run", _I, "topic"),
    "groups": ("group list", _I),
    "group": ("group show", _I, "group"),
    "group_new": ("group create --topic my-topic", _I, "=my-group"),
    "group_topic_delete": ("group delete-offsets", _I, "group", "topic"),
    "group_reset": ("group reset-offsets --to earliest --dry-run", _I, "group"),
    "group_delete": ("group delete", _I, "group"),
    "group_removal": ("group remove-member", _I, "group", "member"),
    "instance_connections": ("connections list", _I),
    "instance_mirrors": ("mirror list", _I),
    "instance_loads": ("load list", _I),
    "instance_load_new": ("load create --every 60", _I, "=my-topic", "=folder"),
    "instance_load": ("load runs", _I, "load_id"),
    "transactions": ("transactions list", _I),
    "transaction": ("transactions show", _I, "transactional_id"),
    "transaction_end": ("transactions end", _I, "transactional_id"),
    "hanging_transactions": ("transactions hanging", _I),
    "hanging_transaction_end": ("transactions end-hanging", _I, "topic", "partition", "offset"),
    "search": ("search", "=text"),
    "operations": ("operation list",),
    "operation": ("operation show", "operation_id"),
    "bills": ("bill invoices",),
    "budgets": ("budget list",),
    "budget_new": ("budget create", "=my-budget", "=1500.00"),
    "budget": ("budget history", "budget_id"),
    "invoice_pdf": ("bill pdf", "number"),
    "invoice_focus": ("bill focus", "number"),
    "invoice_verify": ("bill verify", "number"),
    "statement": ("bill statement",),
    "statement_pdf": ("bill statement-pdf",),
    "statement_focus": ("bill statement-focus",),
    "credit_note_pdf": ("bill credit-note-pdf", "note"),
    "credit_note_focus": ("bill credit-note-focus", "note"),
    "caps": ("caps",),
    "members": ("member list",),
    "organisation_settings": ("organisation show",),
    "organisation_deletion": ("organisation obstacles",),
    "organisation_sso": ("sso show",),
    "keys": ("key list",),
    "roles": ("role list",),
    "role": ("role show", "role_id"),
    "service_accounts": ("service-account list",),
    "service_account": ("service-account show", "service_account_id"),
    "organisation_audit": ("audit",),
    "organisation_audit_file": ("audit --csv",),
    "organisation_audit_verify": ("audit-verify",),
    "fleet": ("fleet instances",),
    "fleet_allocation": ("fleet instances",),
    "fleet_quota_report": ("fleet quota-report",),
    "fleet_jobs": ("job list",),
    "fleet_metering": ("metering brokers",),
    "fleet_invoices": ("metering months",),
    "fleet_credit_notes": ("fleet credit", "=my-organisation", "=my-invoice"),
    "fleet_capacity": ("fleet capacity",),
    "fleet_clusters": ("cluster list",),
    "fleet_cluster": ("cluster show", "cluster"),
    "fleet_broker": ("cluster broker", "cluster", "broker"),
    "fleet_by_itself": ("cluster rebalancing", "cluster"),
    "fleet_heat": ("fleet heat",),
    "fleet_rebalancing": ("rebalance list",),
    "fleet_rebalance": ("rebalance show", "rebalance_id"),
    "fleet_organisation": ("fleet caps", "owner_id"),
    "fleet_instance": ("fleet instance", _I),
}
"""The command with its options, then its arguments: names of what the address says, or =texts."""

CHANGING = frozenset(
    {
        "instance_new", "throttle_rule_new", "alarm_new", "instance_settings", "instance_config", "instance_delete",
        "user_password", "acl_rules", "acl_new", "acl_preset", "route_new", "route_removal", "topic_new", "topic_note",
        "topics_configure", "topic_settings", "topic_delete", "topic_message_new", "topic_schema", "topic_records_delete",
        "group_new", "group_topic_delete", "group_reset", "group_delete", "group_removal", "instance_load_new",
        "transaction_end", "hanging_transaction_end", "budget_new", "leaders_spread",
    }
)  # fmt: skip
"""Pages whose command changes something: nothing for those who may only look."""

OF_A_MONTH = frozenset(
    {
        "instance_bill", "instance_cost_topics", "instance_cost_users", "instance_what_if",
        "statement", "statement_pdf", "statement_focus",
    }
)  # fmt: skip
"""Pages whose address may name a month; without it the program would answer for the present one."""

ASKED = {
    "bandwidth_mib_per_s": ("--bandwidth", r"[0-9]{1,9}(\.[0-9]{1,9})?"),
    "storage_gib": ("--storage", r"[0-9]{1,9}(\.[0-9]{1,9})?"),
    "partitions": ("--partitions", r"[0-9]{1,9}"),
    "plan": ("--plan", r"[a-z][a-z0-9_-]{0,39}"),
}
"""What the page *What if* asks: the option of each field, and what it may hold."""
WHAT_IF_EXAMPLE = " --bandwidth 20"
SNIPPET = {
    "topic": ("--topic", r"[a-zA-Z0-9._-]{1,249}"),
    "route": ("--route", r"default|r[0-9]{1,9}"),
    "mechanism": ("--mechanism", r"[A-Z0-9-]{1,30}"),
}
"""The same of *Connect*. An option is taken from the value by a sign, since a topic may begin with a hyphen."""

LOG = {"actor": ("--actor", r"[A-Za-z0-9._@+-]{1,254}"), "action": ("--action", r"[a-z_.]{1,64}")}
"""The same of the audit log, beside its times."""
OF_THE_LOG = frozenset({"organisation_audit", "organisation_audit_file"})

RANGE, FIRST_RANGE = r"[0-9]{1,3}[hd]", "1h"
"""Of a history: how the page names how much it shows (`times.RANGES`), which the program understands, and its first choice."""

DATE, MOMENT = "%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"


def command_of(page: str | None, ids: Mapping[str, object], query: Mapping[str, str] = NOTHING) -> str | None:
    """The line to be typed; None where the program has none, or a name is nothing that anybody could type."""
    if page not in COMMANDS:
        return None
    words, *places = COMMANDS[page]
    values = [place[1:] if place.startswith("=") else str(ids[place]) for place in places]
    if not all(value.isprintable() for value in values):
        return None
    words += _options(page, ids, query)
    # A name may begin with a hyphen, and would be taken for an option.
    end = ["--"] if any(value.startswith("-") for value in values) else []
    return " ".join([PROGRAM, words, *end, *map(shlex.quote, values)])


def _options(page: str, ids: Mapping[str, object], query: Mapping[str, str]) -> str:
    """What of the page is not in its arguments: the time that it shows, and what was asked."""
    month = query.get("month", "")
    found = f" --month {month}" if page in OF_A_MONTH and re.fullmatch("[0-9]{4}-[0-9]{2}", month) else ""
    if page == "instance_what_if":
        found += _asked(query) or WHAT_IF_EXAMPLE
    elif page == "instance_snippets":
        found += _given(query, SNIPPET)
    elif page in ("instance_history", "instance_broker"):
        found += _shown(query)
    elif page in OF_THE_LOG:
        found += _given(query, LOG) + _between(query)
    elif page == "usage_records":
        found += _range(str(ids.get("hour", "")), HOUR, MOMENT)
    elif page == "instance_usage":
        found += _range(month, MONTH, DATE) if month else _range(query.get("day", ""), DAY, DATE)
    return found


def _shown(query: Mapping[str, str]) -> str:
    """Of charts: ``--from … --to …`` of two moments, ``--from …`` of one up to now, and of a range so much ago."""
    start, end = (_moment(query.get(name, "")) for name in ("since", "until"))
    if start:
        return f" --from {start}" + (f" --to {end}" if end else "")
    length = query.get("range", "")
    return f" --from -{length if re.fullmatch(RANGE, length) else FIRST_RANGE}"


def _between(query: Mapping[str, str]) -> str:
    """Of a list: ``--from …`` and ``--to …``, each where it is said."""
    said = ((option, _moment(query.get(name, ""))) for option, name in (("--from", "since"), ("--to", "until")))
    return "".join(f" {option} {moment}" for option, moment in said if moment)


def _moment(text: str) -> str:
    """In UTC, where no zone is said; empty: it is none."""
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).strftime(MOMENT)
    except (ValueError, OverflowError):
        return ""


def _asked(query: Mapping[str, str]) -> str:
    return _given(query, ASKED, " ")


def _given(query: Mapping[str, str], options: Mapping[str, tuple[str, str]], sign: str = "=") -> str:
    given = ((option, query.get(name, ""), pattern) for name, (option, pattern) in options.items())
    return "".join(f" {option}{sign}{value}" for option, value, pattern in given if re.fullmatch(pattern, value))


def _range(text: str, form: str, shown: str) -> str:
    """``--from … --to …`` of a month, a day or an hour; empty: it is none."""
    try:
        span = span_of(
            text, form, datetime.min.replace(tzinfo=UTC)
        )  # a moment for an address that names none: not here
    except NotFound:
        return ""
    return f" --from {span.start.strftime(shown)} --to {span.end.strftime(shown)}"
