"""Every call of the API that a command makes. Paths are those of docs/openapi.yaml, without the prefix /api/v1.

tests/controlplane/cli/test_every_endpoint.py compares this table with the schema, and with what commands use.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from controlplane.cli.segments import marked, segment_of

PREFIX = "/api/v1"
CHOSEN_BY_CLIENTS = frozenset({"group", "member", "user", "transactional_id"})
"""Names that may hold anything, a "/" too (`segments`)."""


@dataclass(frozen=True, slots=True)
class Call:
    """A method and an address with ids in braces."""

    method: str
    path: str

    def at(self, **ids: str) -> str:
        """The address with these ids; a name may hold anything, a slash too."""
        segments = {name: segment_of(text) if name in CHOSEN_BY_CLIENTS else text for name, text in ids.items()}
        if self.method == "DELETE" and "{group}/" in self.path:  # else it might be a longer name of another group
            segments["group"] = marked(ids["group"])
        return PREFIX + self.path.format(**{name: quote(text, safe="") for name, text in segments.items()})

    @property
    def is_change(self) -> bool:
        """Whether it takes an `Idempotency-Key`."""
        return self.method != "GET"


_INSTANCE = "/instances/{instance_id}"
_TOPIC = f"{_INSTANCE}/topics/{{topic}}"
_GROUP = f"{_INSTANCE}/groups/{{group}}"
_TRANSACTION = f"{_INSTANCE}/transactions/{{transactional_id}}"
_HANGING = f"{_INSTANCE}/hanging-transactions"
_USER = f"{_INSTANCE}/users/{{user}}"
_ROUTE = f"{_INSTANCE}/routes/{{route_id}}"
_RULE = f"{_INSTANCE}/throttle-rules/{{rule_id}}"
_ISSUER = f"{_INSTANCE}/token-issuers/{{issuer_id}}"
_ALARM = f"{_INSTANCE}/alarms/{{alarm_id}}"
_RECEIVER = f"{_INSTANCE}/receivers/{{receiver_id}}"
_LOAD = f"{_INSTANCE}/lake-loads/{{load_id}}"
_PROPOSAL = f"{_INSTANCE}/proposal"

ME = Call("GET", "/me")
SEARCH = Call("GET", "/search")
CAPS = Call("GET", "/caps")
METRICS = Call("GET", "/metrics")
ZONES = Call("GET", "/zones")
AUDIT_TRAIL = Call("GET", "/audit")
AUDIT_FILE = Call("GET", "/audit.csv")
AUDIT_VERIFY = Call("GET", "/audit/verify")

MEMBERS = Call("GET", "/members")
MEMBER = Call("GET", "/members/{membership_id}")
MEMBER_ROLE = Call("PATCH", "/members/{membership_id}")
MEMBER_REMOVE = Call("DELETE", "/members/{membership_id}")
INVITATIONS = Call("GET", "/invitations")
INVITE = Call("POST", "/invitations")
INVITATION_WITHDRAW = Call("DELETE", "/invitations/{invitation_id}")

_ORGANISATION = "/organisations/{organisation_id}"
ORGANISATION = Call("GET", _ORGANISATION)
ORGANISATION_RENAME = Call("PATCH", _ORGANISATION)
ORGANISATION_TRANSFER = Call("POST", f"{_ORGANISATION}/transfer")
ORGANISATION_OBSTACLES = Call("GET", f"{_ORGANISATION}/deletion")
ORGANISATION_DELETE = Call("POST", f"{_ORGANISATION}/deletion")

SSO = Call("GET", "/sso")
SSO_SET = Call("PUT", "/sso")
SSO_CHANGE = Call("PATCH", "/sso")
SSO_REMOVE = Call("DELETE", "/sso")

API_KEYS = Call("GET", "/api-keys")
API_KEY_CREATE = Call("POST", "/api-keys")
API_KEY_REVOKE = Call("DELETE", "/api-keys/{key_id}")
API_KEY_ROTATE = Call("POST", "/api-keys/{key_id}/rotate")
ROLES = Call("GET", "/roles")
ROLE_CREATE = Call("POST", "/roles")
ROLE = Call("GET", "/roles/{role_id}")
ROLE_CHANGE = Call("PATCH", "/roles/{role_id}")
ROLE_DELETE = Call("DELETE", "/roles/{role_id}")
SERVICE_ACCOUNTS = Call("GET", "/service-accounts")
SERVICE_ACCOUNT_CREATE = Call("POST", "/service-accounts")
SERVICE_ACCOUNT = Call("GET", "/service-accounts/{service_account_id}")
SERVICE_ACCOUNT_CHANGE = Call("PATCH", "/service-accounts/{service_account_id}")
SERVICE_ACCOUNT_DELETE = Call("DELETE", "/service-accounts/{service_account_id}")
SERVICE_ACCOUNT_KEYS = Call("GET", "/service-accounts/{service_account_id}/keys")
SERVICE_ACCOUNT_KEY_CREATE = Call("POST", "/service-accounts/{service_account_id}/keys")
ACCESS_KEYS = Call("GET", "/access-keys")
ACCESS_KEY_CREATE = Call("POST", "/access-keys")
ACCESS_KEY_REVOKE = Call("DELETE", "/access-keys/{access_key_id}")

OPERATIONS = Call("GET", "/operations")
OPERATION = Call("GET", "/operations/{operation_id}")

INSTANCE_NAMES = Call("GET", "/instance-names")
INSTANCES = Call("GET", "/instances")
INSTANCE_CREATE = Call("POST", "/instances")
INSTANCE = Call("GET", _INSTANCE)
INSTANCE_CHANGE = Call("PATCH", _INSTANCE)
INSTANCE_DELETE = Call("DELETE", _INSTANCE)
INSTANCE_RESTORE = Call("POST", f"{_INSTANCE}/restore")
INSTANCE_DESTROY = Call("POST", f"{_INSTANCE}/destroy")
SCHEDULED_CHANGES = Call("GET", f"{_INSTANCE}/scheduled-changes")
SCHEDULED_CHANGE_CREATE = Call("POST", f"{_INSTANCE}/scheduled-changes")
SCHEDULED_CHANGE = Call("GET", f"{_INSTANCE}/scheduled-changes/{{change_id}}")
SCHEDULED_CHANGE_CANCEL = Call("DELETE", f"{_INSTANCE}/scheduled-changes/{{change_id}}")
PREPAID = Call("GET", f"{_INSTANCE}/prepaid")
PREPAID_BEGIN = Call("POST", f"{_INSTANCE}/prepaid")
PREPAID_CHANGE = Call("PATCH", f"{_INSTANCE}/prepaid")
PREPAID_RENEW = Call("POST", f"{_INSTANCE}/prepaid/renew")
PREPAID_PRICE = Call("GET", "/prepaid-price")
ELASTIC = Call("GET", f"{_INSTANCE}/elastic-bandwidth")
ELASTIC_SET = Call("PUT", f"{_INSTANCE}/elastic-bandwidth")
INSTANCE_WHITELIST = Call("PUT", f"{_INSTANCE}/whitelist")
INSTANCE_WHITELIST_CHANGE = Call("PATCH", f"{_INSTANCE}/whitelist")
INSTANCE_LIMITS = Call("PUT", f"{_INSTANCE}/limits")
INSTANCE_CA = Call("GET", f"{_INSTANCE}/ca")
INSTANCE_SNIPPETS = Call("GET", f"{_INSTANCE}/snippets")
INSTANCE_PROMETHEUS = Call("GET", f"{_INSTANCE}/prometheus")
INSTANCE_SCRAPE_CONFIG = Call("GET", f"{_INSTANCE}/scrape-config")
INSTANCE_HISTORY = Call("GET", f"{_INSTANCE}/history")
INSTANCE_BROKER_HISTORY = Call("GET", f"{_INSTANCE}/brokers/{{broker}}/history")
INSTANCE_REQUESTS = Call("GET", f"{_INSTANCE}/requests")

POLICIES = Call("GET", f"{_INSTANCE}/policies")
DISK_POLICY = Call("PUT", f"{_INSTANCE}/policies/disk")

TOPICS = Call("GET", f"{_INSTANCE}/topics")
TOPIC_CREATE = Call("POST", f"{_INSTANCE}/topics")
TOPIC = Call("GET", _TOPIC)
TOPIC_CHANGE = Call("PATCH", _TOPIC)
TOPIC_DELETE = Call("DELETE", _TOPIC)
TOPIC_WHITELIST = Call("PUT", f"{_TOPIC}/whitelist")
TOPIC_NOTE = Call("PATCH", f"{_TOPIC}/note")
TOPIC_CONFIGS = Call("GET", f"{_TOPIC}/configs")
TOPIC_HISTORY = Call("GET", f"{_TOPIC}/history")
TOPIC_FIGURES = Call("GET", f"{_TOPIC}/figures")
TOPICS_CONFIGURE = Call("POST", f"{_INSTANCE}/topic-configs")

MESSAGES = Call("GET", f"{_TOPIC}/messages")
MESSAGE = Call("GET", f"{_TOPIC}/messages/{{partition}}/{{offset}}")
MESSAGE_PRODUCE = Call("POST", f"{_TOPIC}/messages")
SCHEMAS = Call("GET", f"{_TOPIC}/schemas")
SCHEMA_SET = Call("PUT", f"{_TOPIC}/schemas/{{part}}")
SCHEMA_DELETE = Call("DELETE", f"{_TOPIC}/schemas/{{part}}")
RECORDS_DELETE = Call("POST", f"{_TOPIC}/delete-records")

GROUPS = Call("GET", f"{_INSTANCE}/groups")
GROUP_CREATE = Call("POST", f"{_INSTANCE}/groups")
GROUP = Call("GET", _GROUP)
GROUP_HISTORY = Call("GET", f"{_GROUP}/history")
GROUP_DELETE = Call("DELETE", _GROUP)
GROUP_OFFSETS = Call("POST", f"{_GROUP}/offsets")
GROUP_TOPIC_DELETE = Call("DELETE", f"{_GROUP}/topics/{{topic}}")
GROUP_MEMBER_REMOVE = Call("DELETE", f"{_GROUP}/members/{{member}}")

CONNECTIONS = Call("GET", f"{_INSTANCE}/connections")
REFUSED_CONNECTIONS = Call("GET", f"{_INSTANCE}/refused-connections")
TALKERS = Call("GET", f"{_INSTANCE}/talkers")

MIRRORS = Call("GET", f"{_INSTANCE}/mirrors")

LOADS = Call("GET", f"{_INSTANCE}/lake-loads")
LOAD_CREATE = Call("POST", f"{_INSTANCE}/lake-loads")
LOAD = Call("GET", _LOAD)
LOAD_CHANGE = Call("PATCH", _LOAD)
LOAD_DELETE = Call("DELETE", _LOAD)
LOAD_RUNS = Call("GET", f"{_LOAD}/runs")
LOAD_RUN = Call("POST", f"{_LOAD}/runs")
LOAD_STOP = Call("POST", f"{_LOAD}/stop")

KEPT_TABLES = Call("GET", f"{_INSTANCE}/lake-tables")
KEPT_TABLE_REMOVE = Call("DELETE", f"{_INSTANCE}/lake-tables/{{load_id}}")

TRANSACTIONS = Call("GET", f"{_INSTANCE}/transactions")
TRANSACTION = Call("GET", _TRANSACTION)
TRANSACTION_END = Call("DELETE", _TRANSACTION)
HANGING_TRANSACTIONS = Call("GET", _HANGING)
HANGING_TRANSACTION_END = Call("DELETE", f"{_HANGING}/{{topic}}/{{partition}}/{{offset}}")

USERS = Call("GET", f"{_INSTANCE}/users")
USER_CREATE = Call("POST", f"{_INSTANCE}/users")
USER = Call("GET", _USER)
USER_DELETE = Call("DELETE", _USER)
USER_PASSWORD = Call("PUT", f"{_USER}/password")

ACLS = Call("GET", f"{_INSTANCE}/acls")
ACL_CREATE = Call("POST", f"{_INSTANCE}/acls")
ACLS_DELETE = Call("DELETE", f"{_INSTANCE}/acls")
ACLS_CREATE = Call("POST", f"{_INSTANCE}/acls/batch")
ACLS_PRESET = Call("POST", f"{_INSTANCE}/acls/presets")
ACCESS_CHECK = Call("POST", f"{_INSTANCE}/access-check")
AUDIT = Call("GET", f"{_INSTANCE}/audit")

PROPOSAL = Call("GET", _PROPOSAL)
PROPOSAL_MAKE = Call("PUT", _PROPOSAL)
PROPOSAL_DISCARD = Call("DELETE", _PROPOSAL)
PROPOSAL_IN_FORCE = Call("POST", f"{_PROPOSAL}/{{proposal_id}}/in-force")

TOKEN_ISSUERS = Call("GET", f"{_INSTANCE}/token-issuers")
TOKEN_ISSUER_CREATE = Call("POST", f"{_INSTANCE}/token-issuers")
TOKEN_ISSUER = Call("GET", _ISSUER)
TOKEN_ISSUER_DELETE = Call("DELETE", _ISSUER)
TOKEN_ISSUER_REFRESH = Call("POST", f"{_ISSUER}/refresh")

ROUTES = Call("GET", f"{_INSTANCE}/routes")
ROUTE_CREATE = Call("POST", f"{_INSTANCE}/routes")
ROUTE = Call("GET", _ROUTE)
ROUTE_CHANGE = Call("PATCH", _ROUTE)
ROUTE_DELETE = Call("DELETE", _ROUTE)
CERTIFICATE = Call("GET", f"{_ROUTE}/certificate")
CERTIFICATE_BRING = Call("PUT", f"{_ROUTE}/certificate")
CERTIFICATE_GIVE_BACK = Call("DELETE", f"{_ROUTE}/certificate")
CLIENT_CA = Call("PUT", f"{_ROUTE}/client-ca")

RULES = Call("GET", f"{_INSTANCE}/throttle-rules")
RULE_CREATE = Call("POST", f"{_INSTANCE}/throttle-rules")
RULE = Call("GET", _RULE)
RULE_CHANGE = Call("PATCH", _RULE)
RULE_DELETE = Call("DELETE", _RULE)

ALARMS = Call("GET", f"{_INSTANCE}/alarms")
ALARM_CREATE = Call("POST", f"{_INSTANCE}/alarms")
ALARM = Call("GET", _ALARM)
ALARM_CHANGE = Call("PATCH", _ALARM)
ALARM_DELETE = Call("DELETE", _ALARM)
ALARM_SILENCE = Call("POST", f"{_ALARM}/silence")
ALARMS_SILENCE = Call("POST", f"{_INSTANCE}/silence")
ALARM_EVENTS = Call("GET", f"{_ALARM}/events")
EVENTS = Call("GET", f"{_INSTANCE}/events")

RECEIVERS = Call("GET", f"{_INSTANCE}/receivers")
RECEIVER_CREATE = Call("POST", f"{_INSTANCE}/receivers")
RECEIVER = Call("GET", _RECEIVER)
RECEIVER_CHANGE = Call("PATCH", _RECEIVER)
RECEIVER_DELETE = Call("DELETE", _RECEIVER)
RECEIVER_CONFIRM = Call("POST", f"{_RECEIVER}/confirm")
RECEIVER_SECRET = Call("POST", f"{_RECEIVER}/secret")
RECEIVER_TEST = Call("POST", f"{_RECEIVER}/test")
RECEIVER_MESSAGES = Call("GET", f"{_RECEIVER}/messages")

ALLOCATION = Call("GET", f"{_INSTANCE}/allocation")
THROTTLING = Call("GET", f"{_INSTANCE}/throttling")
NEIGHBOURS = Call("GET", f"{_INSTANCE}/neighbours")
LEADERS_SPREAD = Call("POST", f"{_INSTANCE}/leaders/spread")
THROTTLING_REASONS = Call("GET", f"{_INSTANCE}/throttling-reasons")
GUARANTEE = Call("GET", f"{_INSTANCE}/guarantee")
QUOTA_REPORT = Call("GET", f"{_INSTANCE}/quota-report")

USAGE = Call("GET", f"{_INSTANCE}/usage")
USAGE_RECORDS = Call("GET", f"{_INSTANCE}/usage/records")
METERING = Call("GET", "/metering")

BILL = Call("GET", f"{_INSTANCE}/bill")
INVOICES = Call("GET", "/invoices")
BUDGETS = Call("GET", "/budgets")
BUDGET_CREATE = Call("POST", "/budgets")
BUDGET = Call("GET", "/budgets/{budget_id}")
BUDGET_CHANGE = Call("PATCH", "/budgets/{budget_id}")
BUDGET_DELETE = Call("DELETE", "/budgets/{budget_id}")
BUDGET_ALERTS = Call("GET", "/budgets/{budget_id}/alerts")
PLAN = Call("GET", "/plan")
PLAN_CHOOSE = Call("PUT", "/plan")
COST = Call("GET", "/cost")
COST_INSTANCES = Call("GET", "/cost/instances")
COST_INSTANCE = Call("GET", f"{_INSTANCE}/cost")
WHAT_IF = Call("GET", f"{_INSTANCE}/what-if")
COST_TOPICS = Call("GET", f"{_INSTANCE}/cost/topics")
COST_USERS = Call("GET", f"{_INSTANCE}/cost/users")
INVOICE = Call("GET", "/invoices/{number}")
INVOICE_PDF = Call("GET", "/invoices/{number}/pdf")
INVOICE_FOCUS = Call("GET", "/invoices/{number}/focus.csv")
INVOICE_VERIFY = Call("POST", "/invoices/{number}/verify")
STATEMENT = Call("GET", "/statement")
STATEMENT_PDF = Call("GET", "/statement/pdf")
STATEMENT_FOCUS = Call("GET", "/statement/focus.csv")
CREDIT_NOTES = Call("GET", "/credit-notes")
CREDIT_NOTE = Call("GET", "/credit-notes/{note}")
CREDIT_NOTE_PDF = Call("GET", "/credit-notes/{note}/pdf")
CREDIT_NOTE_FOCUS = Call("GET", "/credit-notes/{note}/focus.csv")

_FLEET = "/fleet"
FLEET_INSTANCES = Call("GET", f"{_FLEET}/instances")
FLEET_INSTANCE = Call("GET", f"{_FLEET}/instances/{{instance_id}}")
FLEET_ORGANISATIONS = Call("GET", f"{_FLEET}/organisations")
FLEET_OPERATIONS = Call("GET", f"{_FLEET}/operations")
FLEET_BROKERS = Call("GET", f"{_FLEET}/brokers")
FLEET_HEAT = Call("GET", f"{_FLEET}/heat")
FLEET_PROBLEMS = Call("GET", f"{_FLEET}/problems")
FLEET_QUOTA_REPORT = Call("GET", "/quota-report")
FLEET_NEIGHBOURS = Call("GET", "/neighbours")
CAPACITY = Call("GET", "/capacity")
CAPACITY_SET = Call("PUT", "/capacity")
ORGANISATION_CAPS = Call("GET", f"{_ORGANISATION}/caps")
ORGANISATION_CAPS_SET = Call("PATCH", f"{_ORGANISATION}/caps")
INVOICE_CREDIT = Call("GET", f"{_ORGANISATION}/invoices/{{number}}/credit-notes")
INVOICE_CREDIT_GIVE = Call("POST", f"{_ORGANISATION}/invoices/{{number}}/credit-notes")
ANY_CREDIT_NOTE_PDF = Call("GET", f"{_ORGANISATION}/credit-notes/{{note}}/pdf")
TAXES = Call("GET", "/taxes")

_CLUSTER = "/clusters/{cluster}"
CLUSTERS = Call("GET", "/clusters")
CLUSTER_REGISTER = Call("POST", "/clusters")
CLUSTER = Call("GET", _CLUSTER)
CLUSTER_CHANGE = Call("PATCH", _CLUSTER)
CLUSTER_EVENTS = Call("GET", f"{_CLUSTER}/events")
CLUSTER_LEAVING = Call("GET", f"{_CLUSTER}/leaving")
CLUSTER_BROKER = Call("GET", f"{_CLUSTER}/brokers/{{broker}}")
CLUSTER_BROKER_HISTORY = Call("GET", f"{_CLUSTER}/brokers/{{broker}}/history")
BALANCE_RULE = Call("GET", f"{_CLUSTER}/rebalancing")
BALANCE_RULE_SET = Call("PATCH", f"{_CLUSTER}/rebalancing")
BALANCE = Call("GET", "/balance")

_REBALANCE = "/rebalances/{rebalance_id}"
REBALANCES = Call("GET", "/rebalances")
REBALANCE_PROPOSE = Call("POST", "/rebalances")
REBALANCE = Call("GET", _REBALANCE)
REBALANCE_PACE = Call("PATCH", _REBALANCE)
REBALANCE_ACT = Call("POST", f"{_REBALANCE}/actions")
REBALANCE_MOVES = Call("GET", f"{_REBALANCE}/moves")
REBALANCE_EVENTS = Call("GET", f"{_REBALANCE}/events")

JOBS = Call("GET", "/jobs")
JOB_RUNS = Call("GET", "/jobs/{job}/runs")
JOB_RUN = Call("POST", "/jobs/{job}/runs")

METERED_BROKERS = Call("GET", "/metering/brokers")
METERED_BROKER_WAIVE = Call("POST", "/metering/brokers/{broker}/waiver")
METERING_MONTHS = Call("GET", "/metering/months")
METERING_WAIVERS = Call("GET", "/metering/waivers")
METERING_WAIVE = Call("POST", "/metering/waivers")
METERING_CAPS = Call("GET", "/metering/caps")
METERING_CAP = Call("POST", "/metering/caps")
METERING_LOSSES = Call("GET", "/metering/losses")
METERING_LOSS_SETTLE = Call("POST", "/metering/losses/{loss_id}/settle")
METERING_RECONCILIATIONS = Call("GET", "/metering/reconciliations")
METERING_DIFFERENCES = Call("GET", "/metering/differences")
METERING_FOLD = Call("GET", "/metering/fold")
