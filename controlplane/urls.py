"""Every route of the site."""

from __future__ import annotations

from django.urls import include, path, register_converter
from django.urls.converters import StringConverter

from controlplane import metrics, probes
from controlplane.access import api as access
from controlplane.access import proposal_api as proposals
from controlplane.accounts import api as accounts
from controlplane.accounts import custom_role_api as custom_roles
from controlplane.accounts import member_api as members
from controlplane.accounts import service_account_api as service_accounts
from controlplane.admission import api as admission
from controlplane.admission import cluster_api as clusters
from controlplane.alarms import api as alarms
from controlplane.api import audit, operations
from controlplane.api.published import PublishedSchemaApi
from controlplane.billing import api as billing
from controlplane.billing import plan_api, statement_api
from controlplane.budgets import api as budgets
from controlplane.ckafka_api import api as ckafka_api
from controlplane.cli.segments import name_of, segment_of
from controlplane.connections import api as connections
from controlplane.fleet import api as fleet
from controlplane.groups import api as groups
from controlplane.health import api as health
from controlplane.history import api as history
from controlplane.instance_rest import api as instances
from controlplane.instance_rest import certificates, elastic, prepaid, scheduled
from controlplane.loads import api as loads
from controlplane.messages import api as messages
from controlplane.metering import api as metering
from controlplane.mirrors import api as mirrors
from controlplane.organisations import api as organisations
from controlplane.policies import api as policies
from controlplane.quotas import api as quotas
from controlplane.rebalancing import api as rebalancing
from controlplane.remedies import api as remedies
from controlplane.routes import api as routes
from controlplane.schemas import api as schemas
from controlplane.search import api as search
from controlplane.snippets import api as snippets
from controlplane.sso import api as sso
from controlplane.throttle_rules import api as throttle_rules
from controlplane.token_issuers import api as token_issuers
from controlplane.topic_insights import api as topic_insights
from controlplane.topics import api as topics
from controlplane.transactions import api as transactions
from controlplane.what_if import api as what_if


class IdConverter(StringConverter):
    """Ids as core/ids.py makes them; anything else is no address of ours."""

    regex = "[a-z]{2,4}-[a-z0-9]{8,12}"


class RouteConverter(StringConverter):
    """Ids of routes within their instance."""

    regex = "default|r[0-9]{1,9}"


class NameConverter(StringConverter):
    """Names as clients of Kafka choose them: of groups, of members. They may hold anything, line ends and "/" too.

    One with a "/" is a single segment in the addresses that are made here (`cli.segments`). As it is, it is taken too, which
    may be taken for another: see `api.names`.
    """

    regex = r"[\s\S]+"

    def to_python(self, value: str) -> str:
        """Raises ValueError where no name is written so: the address is nobody's."""
        return name_of(value)

    def to_url(self, value: str) -> str:
        return segment_of(value)


class PartConverter(StringConverter):
    """What of a message a schema is about."""

    regex = "key|value"


class ClusterConverter(StringConverter):
    """Names of physical clusters, as clusters/registering.py takes them."""

    regex = "[a-z][a-z0-9-]{0,62}"


register_converter(ClusterConverter, "cluster")
register_converter(IdConverter, "id")
register_converter(NameConverter, "name")
register_converter(PartConverter, "part")
register_converter(RouteConverter, "route")

V1 = "api/v1"
ORGANISATION = f"{V1}/organisations/<id:organisation_id>"
INSTANCE = f"{V1}/instances/<id:instance_id>"
TOPIC = f"{INSTANCE}/topics/<str:topic>"
GROUP = f"{INSTANCE}/groups/<name:group>"  # a name may hold a "/": the longer addresses come first
ALARM = f"{INSTANCE}/alarms/<id:alarm_id>"
RECEIVER = f"{INSTANCE}/receivers/<id:receiver_id>"
USER = f"{INSTANCE}/users/<name:user>"
REBALANCE = f"{V1}/rebalances/<id:rebalance_id>"
CLUSTER = f"{V1}/clusters/<cluster:cluster>"

urlpatterns = [
    path("health", operations.health),
    path("health/live", probes.live),
    path("health/ready", probes.ready),
    path("metrics", metrics.shown, {"parts_text": probes.metrics_text}),
    path("compat/ckafka", ckafka_api.ckafka),
    path(f"{V1}/schema", PublishedSchemaApi.as_view(), name="schema"),
    path(f"{V1}/me", accounts.CallerApi.as_view()),
    path(f"{V1}/search", search.SearchApi.as_view()),
    path(f"{V1}/members", members.MembersApi.as_view()),
    path(f"{V1}/members/<int:membership_id>", members.MemberApi.as_view()),
    path(f"{V1}/invitations", members.InvitationsApi.as_view()),
    path(f"{V1}/invitations/<id:invitation_id>", members.InvitationApi.as_view()),
    path(f"{V1}/sso", sso.SsoApi.as_view()),
    path(f"{V1}/api-keys", accounts.ApiKeysApi.as_view()),
    path(f"{V1}/api-keys/<id:key_id>", accounts.ApiKeyApi.as_view()),
    path(f"{V1}/api-keys/<id:key_id>/rotate", accounts.ApiKeyRotateApi.as_view()),
    path(f"{V1}/roles", custom_roles.CustomRolesApi.as_view()),
    path(f"{V1}/roles/<id:role_id>", custom_roles.CustomRoleApi.as_view()),
    path(f"{V1}/service-accounts", service_accounts.ServiceAccountsApi.as_view()),
    path(f"{V1}/service-accounts/<id:service_account_id>", service_accounts.ServiceAccountApi.as_view()),
    path(f"{V1}/service-accounts/<id:service_account_id>/keys", service_accounts.ServiceAccountKeysApi.as_view()),
    path(f"{V1}/access-keys", accounts.AccessKeysApi.as_view()),
    path(f"{V1}/access-keys/<id:access_key_id>", accounts.AccessKeyApi.as_view()),
    path(f"{V1}/caps", admission.CapsApi.as_view()),
    path(ORGANISATION, organisations.OrganisationApi.as_view()),
    path(f"{ORGANISATION}/transfer", organisations.OwnershipTransferApi.as_view()),
    path(f"{ORGANISATION}/deletion", organisations.OrganisationDeletionApi.as_view()),
    path(f"{ORGANISATION}/caps", admission.OrganisationCapsApi.as_view()),
    path(f"{V1}/capacity", admission.CapacityApi.as_view()),
    path(f"{V1}/fleet/instances", fleet.FleetInstancesApi.as_view()),
    path(f"{V1}/fleet/instances/<id:instance_id>", fleet.FleetInstanceApi.as_view()),
    path(f"{V1}/fleet/organisations", fleet.FleetOrganisationsApi.as_view()),
    path(f"{V1}/fleet/operations", fleet.FleetOperationsApi.as_view()),
    path(f"{V1}/fleet/brokers", fleet.FleetBrokersApi.as_view()),
    path(f"{V1}/fleet/heat", fleet.HeatApi.as_view()),
    path(f"{V1}/fleet/problems", fleet.FleetProblemsApi.as_view()),
    path(f"{V1}/zones", clusters.ZonesApi.as_view()),
    path(f"{V1}/clusters", clusters.ClustersApi.as_view()),
    path(CLUSTER, clusters.ClusterApi.as_view()),
    path(f"{CLUSTER}/brokers/<int:broker>", fleet.ClusterBrokerApi.as_view()),
    path(f"{CLUSTER}/brokers/<int:broker>/history", history.ClusterBrokerHistoryApi.as_view()),
    path(f"{CLUSTER}/events", clusters.ClusterEventsApi.as_view()),
    path(f"{CLUSTER}/leaving", clusters.ClusterLeavingApi.as_view()),
    path(f"{CLUSTER}/rebalancing", rebalancing.BalanceRuleApi.as_view()),
    path(f"{V1}/balance", rebalancing.BalanceApi.as_view()),
    path(f"{V1}/rebalances", rebalancing.RebalancesApi.as_view()),
    path(REBALANCE, rebalancing.RebalanceApi.as_view()),
    path(f"{REBALANCE}/actions", rebalancing.RebalanceActionsApi.as_view()),
    path(f"{REBALANCE}/moves", rebalancing.RebalanceMovesApi.as_view()),
    path(f"{REBALANCE}/events", rebalancing.RebalanceEventsApi.as_view()),
    path(f"{V1}/metrics", health.MetricsApi.as_view()),
    path(f"{V1}/operations", operations.OperationsApi.as_view()),
    path(f"{V1}/operations/<id:operation_id>", operations.OperationApi.as_view()),
    path(f"{V1}/audit", audit.AuditTrailApi.as_view()),
    path(f"{V1}/audit.csv", audit.AuditTrailFileApi.as_view()),
    path(f"{V1}/audit/verify", audit.AuditVerifyApi.as_view()),
    path(f"{V1}/instance-names", instances.InstanceNamesApi.as_view()),
    path(f"{V1}/instances", instances.InstancesApi.as_view()),
    path(INSTANCE, instances.InstanceApi.as_view()),
    path(f"{INSTANCE}/restore", instances.InstanceRestoreApi.as_view()),
    path(f"{INSTANCE}/destroy", instances.InstanceDestroyApi.as_view()),
    path(f"{INSTANCE}/scheduled-changes", scheduled.ScheduledChangesApi.as_view()),
    path(f"{INSTANCE}/scheduled-changes/<id:change_id>", scheduled.ScheduledChangeApi.as_view()),
    path(f"{INSTANCE}/prepaid", prepaid.PrepaidApi.as_view()),
    path(f"{INSTANCE}/prepaid/renew", prepaid.PrepaidRenewApi.as_view()),
    path(f"{INSTANCE}/elastic-bandwidth", elastic.ElasticApi.as_view()),
    path(f"{V1}/prepaid-price", prepaid.PrepaidPriceApi.as_view()),
    path(f"{INSTANCE}/whitelist", instances.InstanceWhitelistApi.as_view()),
    path(f"{INSTANCE}/limits", instances.InstanceLimitsApi.as_view()),
    path(f"{INSTANCE}/allocation", instances.InstanceAllocationApi.as_view()),
    path(f"{INSTANCE}/ca", certificates.InstanceCaApi.as_view()),
    path(f"{INSTANCE}/routes/<route:route_id>/certificate", certificates.RouteCertificateApi.as_view()),
    path(f"{INSTANCE}/routes/<route:route_id>/client-ca", certificates.RouteClientCaApi.as_view()),
    path(f"{INSTANCE}/alarms", alarms.AlarmsApi.as_view()),
    path(f"{INSTANCE}/silence", alarms.AlarmsSilenceApi.as_view()),
    path(f"{ALARM}/silence", alarms.AlarmSilenceApi.as_view()),
    path(f"{ALARM}/events", alarms.AlarmEventsApi.as_view()),
    path(ALARM, alarms.AlarmApi.as_view()),
    path(f"{INSTANCE}/events", alarms.InstanceEventsApi.as_view()),
    path(f"{INSTANCE}/receivers", alarms.ReceiversApi.as_view()),
    path(f"{RECEIVER}/confirm", alarms.ReceiverConfirmApi.as_view()),
    path(f"{RECEIVER}/secret", alarms.ReceiverSecretApi.as_view()),
    path(f"{RECEIVER}/test", alarms.ReceiverTestApi.as_view()),
    path(f"{RECEIVER}/messages", alarms.DeliveriesApi.as_view()),
    path(RECEIVER, alarms.ReceiverApi.as_view()),
    path(f"{INSTANCE}/throttling", quotas.ThrottlingApi.as_view()),
    path(f"{INSTANCE}/throttling-reasons", remedies.ThrottlingReasonsApi.as_view()),
    path(f"{INSTANCE}/neighbours", remedies.NeighboursApi.as_view()),
    path(f"{V1}/neighbours", remedies.EverybodysNeighboursApi.as_view()),
    path(f"{INSTANCE}/leaders/spread", remedies.LeadersSpreadApi.as_view()),
    path(f"{INSTANCE}/guarantee", quotas.GuaranteeApi.as_view()),
    path(f"{INSTANCE}/quota-report", quotas.QuotaReportApi.as_view()),
    path(f"{V1}/quota-report", quotas.EverybodysQuotaReportApi.as_view()),
    path(f"{INSTANCE}/history", history.HistoryApi.as_view()),
    path(f"{INSTANCE}/brokers/<int:broker>/history", history.InstanceBrokerHistoryApi.as_view()),
    path(f"{INSTANCE}/prometheus", history.InstancePrometheusApi.as_view()),
    path(f"{INSTANCE}/metrics", history.InstanceMetricsApi.as_view()),
    path(f"{INSTANCE}/scrape-config", history.InstanceScrapeConfigApi.as_view()),
    path(f"{INSTANCE}/requests", history.InstanceRequestsApi.as_view()),
    path(f"{INSTANCE}/usage", metering.UsageApi.as_view()),
    path(f"{INSTANCE}/usage/records", metering.UsageRecordsApi.as_view()),
    path(f"{INSTANCE}/bill", billing.BillApi.as_view()),
    path(f"{INSTANCE}/cost", billing.CostApi.as_view()),
    path(f"{INSTANCE}/what-if", what_if.WhatIfApi.as_view()),
    path(f"{INSTANCE}/cost/topics", billing.TopicCostsApi.as_view()),
    path(f"{INSTANCE}/cost/users", billing.UserCostsApi.as_view()),
    path(f"{INSTANCE}/policies", policies.PoliciesApi.as_view()),
    path(f"{INSTANCE}/policies/disk", policies.DiskPolicyApi.as_view()),
    path(f"{V1}/budgets", budgets.BudgetsApi.as_view()),
    path(f"{V1}/budgets/<id:budget_id>", budgets.BudgetApi.as_view()),
    path(f"{V1}/budgets/<id:budget_id>/alerts", budgets.BudgetAlertsApi.as_view()),
    path(f"{V1}/plan", plan_api.PlanApi.as_view()),
    path(f"{V1}/cost", billing.OrganisationCostApi.as_view()),
    path(f"{V1}/cost/instances", billing.InstanceCostsApi.as_view()),
    path(f"{V1}/invoices", billing.InvoicesApi.as_view()),
    path(f"{V1}/invoices/<id:number>", billing.InvoiceApi.as_view()),
    path(f"{V1}/invoices/<id:number>/pdf", billing.InvoicePdfApi.as_view()),
    path(f"{V1}/invoices/<id:number>/focus.csv", billing.InvoiceFocusApi.as_view()),
    path(f"{V1}/invoices/<id:number>/verify", billing.InvoiceVerifyApi.as_view()),
    path(f"{V1}/statement", statement_api.StatementApi.as_view()),
    path(f"{V1}/statement/pdf", statement_api.StatementPdfApi.as_view()),
    path(f"{V1}/statement/focus.csv", statement_api.StatementFocusApi.as_view()),
    path(f"{V1}/credit-notes", billing.CreditNotesApi.as_view()),
    path(f"{V1}/credit-notes/<id:note>", billing.CreditNoteApi.as_view()),
    path(f"{V1}/credit-notes/<id:note>/pdf", billing.CreditNotePdfApi.as_view()),
    path(f"{V1}/credit-notes/<id:note>/focus.csv", billing.CreditNoteFocusApi.as_view()),
    path(f"{ORGANISATION}/invoices/<id:number>/credit-notes", billing.InvoiceCreditNotesApi.as_view()),
    path(f"{ORGANISATION}/credit-notes/<id:note>/pdf", billing.CreditNoteOfAnyPdfApi.as_view()),
    path(f"{V1}/taxes", billing.TaxesApi.as_view()),
    path(f"{V1}/metering/losses", metering.LossesApi.as_view()),
    path(f"{V1}/metering/losses/<int:loss_id>/settle", metering.LossSettleApi.as_view()),
    path(f"{V1}/metering/caps", metering.UsageCapsApi.as_view()),
    path(f"{V1}/metering/months", billing.WaitingMonthsApi.as_view()),
    path(f"{V1}/metering/waivers", billing.WaiversApi.as_view()),
    path(f"{V1}/metering/fold", metering.FoldApi.as_view()),
    path(f"{V1}/metering/reconciliations", metering.ReconciliationsApi.as_view()),
    path(f"{V1}/metering/differences", metering.DifferencesApi.as_view()),
    path(f"{V1}/metering/brokers", metering.MeteredBrokersApi.as_view()),
    path(f"{V1}/metering/brokers/<int:broker>/waiver", billing.BrokerWaiverApi.as_view()),
    path(f"{V1}/jobs", metering.JobsApi.as_view()),
    path(f"{V1}/jobs/<str:job>/runs", metering.JobRunsApi.as_view()),
    path(f"{V1}/metering", metering.MeteringApi.as_view()),
    path(f"{INSTANCE}/snippets", snippets.SnippetsApi.as_view()),
    path(f"{INSTANCE}/routes", routes.RoutesApi.as_view()),
    path(f"{INSTANCE}/routes/<route:route_id>", routes.RouteApi.as_view()),
    path(f"{INSTANCE}/throttle-rules", throttle_rules.ThrottleRulesApi.as_view()),
    path(f"{INSTANCE}/throttle-rules/<id:rule_id>", throttle_rules.ThrottleRuleApi.as_view()),
    path(f"{INSTANCE}/topics", topics.TopicsApi.as_view()),
    path(TOPIC, topics.TopicApi.as_view()),
    path(f"{TOPIC}/whitelist", topics.TopicWhitelistApi.as_view()),
    path(f"{TOPIC}/note", topics.TopicNoteApi.as_view()),
    path(f"{TOPIC}/configs", topics.TopicConfigsApi.as_view()),
    path(f"{TOPIC}/history", history.TopicHistoryApi.as_view()),
    path(f"{TOPIC}/figures", topic_insights.TopicFiguresApi.as_view()),
    path(f"{INSTANCE}/topic-configs", topics.TopicsConfigsApi.as_view()),
    path(f"{TOPIC}/messages", messages.MessagesApi.as_view()),
    path(f"{TOPIC}/messages/<int:partition>/<int:offset>", messages.MessageApi.as_view()),
    path(f"{TOPIC}/schemas", schemas.MessageSchemasApi.as_view()),
    path(f"{TOPIC}/schemas/<part:part>", schemas.MessageSchemaApi.as_view()),
    path(f"{TOPIC}/delete-records", messages.RecordsDeletionApi.as_view()),
    path(f"{INSTANCE}/groups", groups.GroupsApi.as_view()),
    path(f"{GROUP}/history", history.GroupHistoryApi.as_view()),
    path(f"{GROUP}/offsets", groups.GroupOffsetsApi.as_view()),
    path(f"{GROUP}/members/<name:member>", groups.GroupMemberApi.as_view()),
    path(f"{GROUP}/topics/<str:topic>", groups.GroupTopicApi.as_view()),
    path(GROUP, groups.GroupApi.as_view()),
    path(f"{INSTANCE}/connections", connections.ConnectionsApi.as_view()),
    path(f"{INSTANCE}/refused-connections", connections.RefusedConnectionsApi.as_view()),
    path(f"{INSTANCE}/talkers", connections.TalkersApi.as_view()),
    path(f"{INSTANCE}/mirrors", mirrors.MirrorsApi.as_view()),
    path(f"{INSTANCE}/lake-loads", loads.LoadsApi.as_view()),
    path(f"{INSTANCE}/lake-loads/<id:load_id>", loads.LoadApi.as_view()),
    path(f"{INSTANCE}/lake-loads/<id:load_id>/runs", loads.LoadRunsApi.as_view()),
    path(f"{INSTANCE}/lake-loads/<id:load_id>/stop", loads.LoadStopApi.as_view()),
    path(f"{INSTANCE}/lake-tables", loads.KeptTablesApi.as_view()),
    path(f"{INSTANCE}/lake-tables/<id:load_id>", loads.KeptTableApi.as_view()),
    path(f"{INSTANCE}/transactions", transactions.TransactionsApi.as_view()),
    path(f"{INSTANCE}/transactions/<name:transactional_id>", transactions.TransactionApi.as_view()),
    path(f"{INSTANCE}/hanging-transactions", transactions.HangingTransactionsApi.as_view()),
    path(
        f"{INSTANCE}/hanging-transactions/<str:topic>/<int:partition>/<int:offset>",
        transactions.HangingTransactionApi.as_view(),
    ),
    path(f"{INSTANCE}/users", access.UsersApi.as_view()),
    path(f"{USER}/password", access.UserPasswordApi.as_view()),
    path(USER, access.UserApi.as_view()),
    path(f"{INSTANCE}/proposal", proposals.ProposalApi.as_view()),
    path(f"{INSTANCE}/proposal/<id:proposal_id>/in-force", proposals.ProposalInForceApi.as_view()),
    path(f"{INSTANCE}/audit", access.AuditApi.as_view()),
    path(f"{INSTANCE}/token-issuers", token_issuers.TokenIssuersApi.as_view()),
    path(f"{INSTANCE}/token-issuers/<id:issuer_id>", token_issuers.TokenIssuerApi.as_view()),
    path(f"{INSTANCE}/token-issuers/<id:issuer_id>/refresh", token_issuers.TokenIssuerRefreshApi.as_view()),
    path(f"{INSTANCE}/access-check", access.AccessCheckApi.as_view()),
    path(f"{INSTANCE}/acls", access.AclsApi.as_view()),
    path(f"{INSTANCE}/acls/batch", access.AclBatchApi.as_view()),
    path(f"{INSTANCE}/acls/presets", access.AclPresetsApi.as_view()),
    path("", include("controlplane.console.urls")),
]

# Under /api/ these answer as problem documents, elsewhere as pages.
handler400 = "controlplane.console.views.errors.bad_request"
handler404 = "controlplane.console.views.errors.not_found"
handler500 = "controlplane.console.views.errors.server_error"
