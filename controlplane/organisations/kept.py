"""What of an organisation goes when it is deleted, and what stays: every kind of row that names an organisation is in one list.

What stays is what a bill is computed from, what it says, and the audit log with its chain; a test computes the bills of a deleted
organisation again. Of the rows that stay, what says something about people and is not needed for that is emptied (`EMPTIED`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.accounts.models import AccessKey, ApiKey, ServiceAccount
from controlplane.admission.models import OrganisationCap, ScheduledChange
from controlplane.alarms.models import Alarm, AlarmEvent, Delivery, Receiver
from controlplane.billing.models import (
    CreditNote,
    Invoice,
    InvoiceFailure,
    MonthCost,
    PlanChoice,
    Prepaid,
    PrepaidEvent,
    Settled,
    TaxRate,
)
from controlplane.budgets.models import Budget, BudgetAlert, BudgetReceiver
from controlplane.certificates.models import Authority, RouteCertificate
from controlplane.core.models import AuditChain, AuditEntry, AuditFold, Operation
from controlplane.idempotency.models import RepeatableCall
from controlplane.instances.models import Instance, Route, SpecChange
from controlplane.loads.models import KeptTable, Load, LoadRun
from controlplane.policies.models import DiskPolicy, ShortenedTopic
from controlplane.schemas.models import MessageSchema
from controlplane.sso.models import SsoLink, SsoProvider
from controlplane.tenants.models import CustomRole, Invitation, Membership
from controlplane.token_issuers.models import TokenIssuer
from controlplane.topics.models import TopicNote

if TYPE_CHECKING:
    from django.db import models

GOES: tuple[type[models.Model], ...] = (
    # Who signs people in comes first, as in whoever connects a member; then who belongs to it, so that no key is made meanwhile.
    SsoLink,
    SsoProvider,
    Membership,
    Invitation,
    RepeatableCall,
    ApiKey,
    AccessKey,
    ServiceAccount,
    CustomRole,
    BudgetAlert,
    BudgetReceiver,
    Budget,
    Delivery,
    AlarmEvent,
    Alarm,
    Receiver,
    RouteCertificate,
    Authority,
    TokenIssuer,
    MessageSchema,
    TopicNote,
    ShortenedTopic,
    DiskPolicy,
    ScheduledChange,
    OrganisationCap,
    LoadRun,
    Load,
    KeptTable,
    AuditFold,
)
"""In this order: what refers to something goes before it."""
STAYS: tuple[type[models.Model], ...] = (
    # What bills are computed from.
    Instance,
    SpecChange,
    Route,  # the ids within an instance
    PlanChoice,
    TaxRate,
    Prepaid,
    PrepaidEvent,
    # What they say.
    Invoice,
    CreditNote,
    InvoiceFailure,
    Settled,
    MonthCost,
    # Who did what.
    Operation,
    AuditEntry,
    AuditChain,
)
EMPTIED: tuple[tuple[type[models.Model], dict[str, object]], ...] = (
    (Instance, {"whitelist": [], "topic_whitelists": {}}),
    (Route, {"whitelist": None, "principal_mapping": [], "advertised_host": "", "advertised_hosts": {}}),
    (PrepaidEvent, {"actor": ""}),
    (Operation, {"actor": ""}),  # the audit log says who
)
"""Members of rows that stay, with what stands there then: addresses of networks and of people, names of a tenant's hosts."""
