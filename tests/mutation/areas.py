"""What is changed, and the tests that have to notice: those of the area that run in the process and take no time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Area:
    """Files (as mutmut's patterns), and files or folders of tests."""

    changed: tuple[str, ...]
    tests: tuple[str, ...]


_QUOTA = (
    "acl_decisions",
    "acl_filters",
    "allocate",
    "bucket",
    "explain",
    "explain_access",
    "explain_in_words",
    "explain_interval",
    "fences",
    "ledger",
    "ledger_divides_rules",
    "ledger_follows_changes",
    "matching",
    "max_min_shares",
    "principal_rules",
    "pulsar_bugs",
    "recorder",
    "recorder_sums",
    "refused_bytes",
    "remainders",
    "report_server",
    "reports_in_pieces",
    "reports_of_changes",
    "scram",
    "subject",
    "transactions_everywhere",
    "what_is_known_of_an_instance",
    "windows_of_requests",
)

_CONSUMER = ("draft", "epochs", "joining", "ledger", "model", "reconciliation", "records", "state", "target")
_ROOT = Path(__file__).parents[2]

AREAS = {
    "quota": Area(("quota/core/*.py",), tuple(f"tests/quota/test_{name}.py" for name in _QUOTA)),
    "records": Area(("dataplane/records/*.py",), ("tests/dataplane/records",)),
    "groups": Area(
        (
            *(
                f"dataplane/groups/classic/{name}.py"
                for name in ("state", "rebalance", "joining", "model", "members", "sharing")
            ),
            "dataplane/groups/offsets.py",
            "dataplane/groups/pending.py",
        ),
        tuple(str(path.relative_to(_ROOT)) for path in sorted(_ROOT.glob("tests/dataplane/groups/test_*.py"))),
    ),
    "consumer groups": Area(
        (
            *(f"dataplane/groups/consumer/{name}.py" for name in _CONSUMER),
            "dataplane/groups/consumer/assignors/*.py",
        ),
        tuple(
            f"tests/dataplane/groups/consumer/test_{name}.py"
            for name in ("assignors", "coordinator", "members", "reconciliation", "transcripts", "who_may_speak")
        ),
    ),
    "transactions": Area(
        tuple(
            f"dataplane/transactions/{name}.py"
            for name in ("state", "draft", "ending", "model", "records", "counts", "limits")
        ),
        tuple(
            f"tests/dataplane/transactions/test_{name}.py"
            for name in (
                "state",
                "every_request_in_every_state",
                "promises",
                "records",
                "transcripts",
                "limits",
            )
        ),
    ),
    "transactions of a log": Area(
        (
            "dataplane/storage/checkpoints/transactions.py",
            "dataplane/storage/segments/aborted.py",
            "dataplane/storage/cleaner/transactions.py",
        ),
        (
            "tests/dataplane/storage/test_transactions_of_a_log.py",
            "tests/dataplane/storage/test_compaction_of_transactions.py",
        ),
    ),
    "alarms": Area(
        (
            *(
                f"controlplane/alarms/{name}.py"
                for name in ("machine", "rules", "delivery/signing", "delivery/targets")
            ),
            "controlplane/core/addresses.py",
        ),
        tuple(f"tests/controlplane/alarms/test_{name}.py" for name in ("addresses", "machine", "rules", "signing")),
    ),
    "terraform": Area(
        tuple(f"controlplane/terraform/{name}.py" for name in ("diagnostics", "planning", "schema", "values", "wire")),
        ("tests/controlplane/terraform/test_planning.py",),
    ),
    "tenancy": Area(
        (
            "dataplane/tenancy/whitelist.py",
            "dataplane/tenancy/instance.py",
            "dataplane/tenancy/recent.py",
            "dataplane/tenancy/refused_here.py",
            "dataplane/tenancy/talkers.py",
            "quota/contracts/namespace.py",
        ),
        ("tests/dataplane/tenancy", "tests/quota/test_names_of_instances.py", "tests/quota/test_namespace.py"),
    ),
    "requests": Area(
        (
            "dataplane/flow/windows.py",
            "dataplane/protocol/error_codes.py",
            "dataplane/tenancy/request_figures.py",
            "quota/contracts/requests.py",
        ),
        (
            "tests/dataplane/protocol/test_error_codes.py",
            "tests/dataplane/tenancy/test_request_figures.py",
            "tests/dataplane/test_request_windows.py",
            "tests/quota/test_request_counts.py",
        ),
    ),
    "rating": Area(
        tuple(f"controlplane/billing/pricing/{name}.py" for name in ("rating", "money", "documents", "plans")),
        tuple(f"tests/controlplane/billing/test_{name}.py" for name in ("documents", "golden_bill", "rating_rules")),
    ),
    "prepaid": Area(
        tuple(f"controlplane/billing/pricing/{name}.py" for name in ("prepaid", "prepaid_prices", "elastic")),
        tuple(
            f"tests/controlplane/billing/test_{name}.py"
            for name in ("prepaid_rules", "prepaid_prices", "elastic_rules")
        ),
    ),
    "costs": Area(
        tuple(f"controlplane/billing/pricing/{name}.py" for name in ("forecast", "sharing", "what_if")),
        tuple(f"tests/controlplane/billing/test_{name}_rules.py" for name in ("forecast", "sharing", "what_if")),
    ),
    "budgets": Area(("controlplane/budgets/rules.py",), ("tests/controlplane/budgets/test_rules.py",)),
    "policies": Area(
        tuple(f"controlplane/policies/{name}.py" for name in ("planning", "rules")),
        tuple(f"tests/controlplane/policies/test_{name}.py" for name in ("planning", "rules")),
    ),
    "remedies": Area(
        tuple(f"controlplane/remedies/{name}.py" for name in ("merging", "proposals", "scores", "spreading", "who")),
        (
            "tests/controlplane/console/test_reasons.py",
            *(f"tests/controlplane/remedies/test_{name}.py" for name in ("proposals", "scores", "spreading", "who")),
        ),
    ),
    "jobs": Area(
        tuple(f"controlplane/metering/pipeline/{name}.py" for name in ("quota_days", "schedule")),
        tuple(f"tests/controlplane/metering/test_{name}.py" for name in ("quota_days", "schedule")),
    ),
    "cli": Area(
        ("controlplane/cli/tables.py", "controlplane/cli/values.py"),
        ("tests/controlplane/cli/test_tables_and_values.py",),
    ),
    "elections": Area(
        ("dataplane/controller/decisions/elections.py",),
        (
            "tests/dataplane/controller/test_decisions.py",
            "tests/dataplane/controller/test_eligible_leaders.py",
            "tests/dataplane/controller/test_what_a_decision_writes.py",
        ),
    ),
    "clients": Area(
        (
            *(f"dataplane/clients/{name}.py" for name in ("messages", "moving", "partitioners", "versions")),
            *(f"dataplane/clients/connector/{name}.py" for name in ("rebalance", "subscriptions")),
            *(f"dataplane/clients/mirror/{name}.py" for name in ("offset_map", "recovery")),
        ),
        (
            "tests/dataplane/clients/mirror",
            *(
                f"tests/dataplane/clients/test_{name}.py"
                for name in (
                    "brokers_of_any_age",
                    "messages",
                    "moving",
                    "partitioners",
                    "simple_consumer",
                    "what_a_member_registers",
                    "who_gets_which_partitions",
                )
            ),
        ),
    ),
}
