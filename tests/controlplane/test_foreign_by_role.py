"""What is another organisation's answers as what is not there: to every role, by every route of REST and every page.

Ten callers of one organisation ask for the ids of another one, and for ids that nobody has: the status, the headers and the
bytes of the body are the same, but for the id itself and what each answer has of its own (the request's id, the CSRF token).
Where a role may not even ask, it is told so of both alike. Nothing that they ask for changes anything.

Routes and pages come from the routes themselves, so that one added later is asked for by being there. What is asked:

of REST       every route with an id: all ids foreign; and those of things within an instance, in an instance of one's own
of the console every page with an id, by GET and by POST: in the organisation that is foreign, through one's own organisation, and
              of things within an instance in an instance of one's own

Keys open no page, so that three of the ten ask by REST alone. All is asked for in one world, since making one takes longer than
to ask for everything in it.
"""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest
from django.test import Client
from django.urls import reverse

import controlplane.urls  # noqa: F401  # it knows the converters that the console's routes use
from controlplane.accounts import service_accounts
from controlplane.accounts import services as accounts
from controlplane.accounts.identity import engine
from controlplane.accounts.scopes import CHANGING, SCOPES
from controlplane.console import urls as pages
from controlplane.env import REST_LIMITS
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Role

from .conftest import client_of
from .console.test_who_sees_what import FORMS, POSTS_ONLY
from .rows import custom_role_row, instance_row, service_account_row
from .test_foreign_ids import BODIES, OPERATORS, WITH_IDS, address, rows, theirs

__all__ = ["theirs"]
pytestmark = pytest.mark.timeout(400)
OWN_INSTANCE, OWN_NAME = "ins-charlie0", "of-charlie"
PEOPLE = ("owner", "member", "viewer", "operator", "billing", "own role", "staff")
CALLERS = (*PEOPLE, "key with scopes", "key of some instances", "service account")
OFTEN = ("owner", "own role", "staff", "key of some instances")
"""Who asks in `make test`: each is judged in another place of the code. All of them ask in the long profile."""
ASKING = pytest.mark.parametrize(
    "asking", [pytest.param(OFTEN, id="some"), pytest.param(CALLERS, id="all", marks=pytest.mark.long)]
)
MISSING = {
    "<id:organisation_id>": "org-000000000000",
    "<id:instance_id>": "ins-00000000",
    "<id:operation_id>": "op-000000000000",
    "<id:access_key_id>": "key-000000000000",
    "<id:key_id>": "key-000000000000",
    "<id:issuer_id>": "iss-000000000000",
    "<id:rule_id>": "rule-000000000000",
    "<id:number>": "inv-00000000",
    "<id:note>": "crn-00000000",
    "<id:service_account_id>": "svc-000000000000",
    "<id:role_id>": "rol-000000000000",
    "<id:budget_id>": "bud-000000000000",
    "<id:load_id>": "load-000000000000",
    "<id:alarm_id>": "alm-000000000000",
    "<id:receiver_id>": "rcv-000000000000",
    "<id:change_id>": "chg-000000000000",
    "<id:proposal_id>": "prp-000000000000",
    "<int:membership_id>": "987654320",
    "<id:invitation_id>": "join-000000000000",
}
"""Ids that nobody has, by the names that routes give them."""
WITHIN_INSTANCE = tuple(
    f"<id:{name}>"
    for name in ("issuer_id", "rule_id", "load_id", "alarm_id", "receiver_id", "change_id", "proposal_id")
)
"""Of things that an instance has: foreign in an instance of one's own, too."""
OF_ITS_OWN = re.compile(
    rb'name="csrfmiddlewaretoken" value="\w+"|"X-CSRFToken": "\w+"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
)
HEADERS_OF_ITS_OWN = {"X-Request-Id", "Set-Cookie"}
NOT_FOUND, CLOSED, NO_SUCH_METHOD = 404, 403, 405
IN_THEIRS = "in theirs"
ELSEWHERE = ("nodes", "topics", "configs", "groups", "transactions")
MOST_SECRET = ("alice", "events")
"""What alice's world holds that no page of others may show."""

SEEN_BY_STAFF = OPERATORS | {
    ("get", "operations/<id:operation_id>"),
    ("get", "organisations/<id:organisation_id>"),
}
"""Operators of the service are shown these, whosever it is; the organisation is told so."""
CONSOLE = {route.name: route.pattern.converters for route in pages.urlpatterns}
BY_RIGHT = {name for name in CONSOLE if name.startswith("fleet")}
"""Operators of the service open these, whosever it is."""
OF_NO_ORGANISATION = {name for name, ids in CONSOLE.items() if {"cluster", "rebalance_id", "token", "whose"} & set(ids)}
"""What is in these addresses is no organisation's, a secret that cannot be guessed, or (where a provider leads back to) not
looked up before the browser has shown that it was sent there."""
PAGES = [name for name, ids in CONSOLE.items() if ids and name not in OF_NO_ORGANISATION]
OF_TENANTS = [name for name in PAGES if "organisation_id" in CONSOLE[name]]
WITHOUT_IDS = [name for name in OF_TENANTS if len(CONSOLE[name]) == 1 and name not in POSTS_ONLY]


def bare(ids):
    """The same by the names that the console's routes have; those that REST has not are added."""
    found = {re.sub(r"<\w+:(\w+)>", r"\1", name): value for name, value in ids.items()}
    owner = found["organisation_id"]
    return found | {"owner_id": owner, "hour": "2025-11-21T09"}


def page_address(name, ids):
    return reverse(f"console:{name}", kwargs={key: ids[key] for key in CONSOLE[name]})


@pytest.fixture
def callers(charlie):
    """By name, in charlie's organisation: their key, and their browser where they have one."""
    own = charlie.organisation
    instance_row(own, OWN_INSTANCE, name=OWN_NAME)
    found = {"owner": (charlie.key, charlie.user)}
    for role in (Role.MEMBER, Role.VIEWER, Role.OPERATOR, Role.BILLING):
        found[role.value] = joined(own, role.value, role)
    everything = {scope: "change" if scope in CHANGING else "look" for scope in SCOPES}
    role = custom_role_row(own, "rol-charlies0000", scopes=everything)
    found["own role"] = joined(own, "own", Role.VIEWER, role)
    accounts.admin_ensure(email="admin@example.com", password=None)
    found["staff"] = joined(own, "admin", Role.OWNER)
    scopes, some = ["read", "topics", "messages", "alarms"], [OWN_INSTANCE]
    for name, limits in (("key with scopes", {"scopes": scopes}), ("key of some instances", {"instances": some})):
        found[name] = (accounts.api_key_create(organisation=own, user=charlie.user, name=name, **limits)[1], None)
    account = service_account_row(own, "svc-charlies0000")
    account.created_by = charlie.user.email
    account.save(update_fields=["created_by"])
    made = service_accounts.service_account_key_create(
        organisation=own, by=charlie.user, service_account_id=account.id, name="ci"
    )
    found["service account"] = (made[1], None)
    assert set(found) == set(CALLERS)
    return {name: (client_of(key), None if user is None else browser(user)) for name, (key, user) in found.items()}


def joined(organisation, name, role, custom_role=None):
    user, _ = accounts.user_ensure(email=f"{name}@example.com", password=None)
    tenants.membership_set(organisation=organisation, user=user, role=role, custom_role=custom_role)
    return accounts.api_key_create(organisation=organisation, user=user, name=name)[1], user


def browser(user):
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def unhurried(theirs, settings, monkeypatch):
    """As many requests as it takes, for as long as it takes: when sessions were last seen is not written down meanwhile."""
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, rest_limits=dict.fromkeys(REST_LIMITS, 0))
    monkeypatch.setattr(engine, "SEEN_PRECISION", timedelta(days=1))


@pytest.fixture
def changed(tree, admin, charlie):
    """What is otherwise than it was when the test began, but for what charlie's log says of who was refused; empty: nothing."""

    def looked():
        elsewhere = (tree.nodes, admin.topics, admin.configs, admin.groups.found, admin.transactions.found)
        return rows(but_denials_of=charlie.organisation) | dict(zip(ELSEWHERE, deepcopy(elsewhere), strict=True))

    before = {}

    def compared():
        if not before:
            before.update(looked())
        return {name: new_in(before[name], now) for name, now in looked().items() if now != before[name]}

    return compared


def new_in(before, now):
    """Rows of a table that were not there; of anything else, what it is now."""
    return [row for row in now if row not in before] if isinstance(now, list) else now


class Comparison:
    """Of answers about what is foreign with those about what is missing: what differs, and how much was asked."""

    def __init__(self, foreign, missing):
        self.ids = sorted(
            {
                (str(foreign[name]).encode(), str(missing[name]).encode())
                for name in missing
                if missing[name] != foreign[name]
            },
            key=lambda pair: -len(pair[0]),
        )
        self.asked, self.differ = 0, []
        self.no_such_methods = set()  # pages that are not asked so, whoever asks: the owner alone tries it

    def __call__(self, where, found, nothing, may_be):
        self.asked += 2
        status = found.status_code, nothing.status_code
        if status[0] != status[1] or status[0] not in may_be:
            self.differ.append(f"{where}: {status[0]}, and {status[1]} of what is missing")
        elif self._told(found) != self._told(nothing):
            self.differ.append(f"{where}: the answer tells that there is something")

    def _told(self, answer):
        """Foreign ids are written as the missing ones in both: what is the same in both stays so."""
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        headers = {name: value for name, value in answer.headers.items() if name not in HEADERS_OF_ITS_OWN}
        told = OF_ITS_OWN.sub(b"", body), repr(sorted(headers.items())).encode()
        for foreign, missing in self.ids:
            told = tuple(part.replace(foreign, missing) for part in told)
        return told


def crossed(ids):
    """In an instance of one's own."""
    return {**ids, "<id:instance_id>": OWN_INSTANCE}


@ASKING
def test_by_rest_what_is_foreign_is_answered_as_what_is_missing(callers, theirs, unhurried, changed, asking):
    missing = {**theirs, **MISSING}
    compare = Comparison(theirs, missing)
    assert changed() == {}
    for caller in asking:
        api = callers[caller][0]
        may_be = {NOT_FOUND} if caller == "owner" else {NOT_FOUND, CLOSED}
        for method, text in WITH_IDS:
            if caller == "staff" and (method, text) in SEEN_BY_STAFF:
                continue
            call, body = getattr(api, method), BODIES.get((method, text))
            pairs = [(theirs, missing)]
            if "<id:instance_id>" in text and any(each in text for each in WITHIN_INSTANCE):
                pairs.append((crossed(theirs), crossed(missing)))
            for foreign, nothing in pairs:
                where = f"{caller}: {method} {address(text, foreign)}"
                compare(where, call(address(text, foreign), body), call(address(text, nothing), body), may_be)
        assert (changed(), compare.differ) == ({}, []), caller
    told = f"{len(asking)} callers x {len(WITH_IDS)} routes: {compare.asked} requests"
    print(told)  # counts are part of what this shows
    assert compare.asked >= 2 * len(asking) * (len(WITH_IDS) - len(SEEN_BY_STAFF)) >= 300 * len(asking), told


def asked_pages(client, name, foreign, missing, own, compare, caller):
    """A page with the ids of the other organisation, in its address and through one's own; by GET, and its form."""
    places = [(IN_THEIRS, {}, {})]
    if "organisation_id" in CONSOLE[name] and len(CONSOLE[name]) > 1:
        places.append(("through one's own", own, own))
        if {re.sub(r"<\w+:(\w+)>", r"\1", each) for each in WITHIN_INSTANCE} & set(CONSOLE[name]):
            inside = own | {"instance_id": OWN_INSTANCE}
            places.append(("in an own instance", inside, inside))
    asks = {"get": {}, "post": FORMS.get(name, {})}
    for (place, of_foreign, of_missing), (method, form) in product(places, asks.items()):
        if caller != "owner" and (name, method) in compare.no_such_methods:
            continue
        ask = getattr(client, method)
        found, nothing = page_address(name, foreign | of_foreign), page_address(name, missing | of_missing)
        may_be = {NOT_FOUND} if caller == "owner" or place == IN_THEIRS else {NOT_FOUND, CLOSED}
        if not form:
            may_be |= {NO_SUCH_METHOD}
        compare(f"{caller}: {method} {name} {place}", first := ask(found, form), ask(nothing, form), may_be)
        if first.status_code == NO_SUCH_METHOD:
            compare.no_such_methods.add((name, method))


@ASKING
def test_on_pages_what_is_foreign_is_answered_as_what_is_missing(callers, charlie, theirs, unhurried, changed, asking):
    asking = [caller for caller in asking if caller in PEOPLE]
    foreign, missing = bare(theirs), bare({**theirs, **MISSING})
    own = {"organisation_id": charlie.organisation.id}
    compare = Comparison(foreign, missing)
    for caller in asking:  # the session remembers where they last were
        callers[caller][1].get(f"/{charlie.organisation.id}/keys")
    assert changed() == {}
    for caller in asking:
        for name in PAGES:
            if caller == "staff" and name in BY_RIGHT:
                continue
            asked_pages(callers[caller][1], name, foreign, missing, own, compare, caller)
        assert (changed(), compare.differ) == ({}, []), caller
    told = f"{len(asking)} people x {len(PAGES)} pages: {compare.asked} requests"
    print(told)
    assert compare.asked >= 3 * len(asking) * (len(PAGES) - len(BY_RIGHT)) >= 358 * len(asking), told


def test_pages_of_ones_own_organisation_show_nothing_of_another_one(callers, charlie, theirs):
    secrets = {*MOST_SECRET, *(value for name, value in theirs.items() if name.startswith("<id:") and len(value) > 8)}
    shown = 0
    for caller in PEOPLE:
        for name in WITHOUT_IDS:
            answer = callers[caller][1].get(page_address(name, {"organisation_id": charlie.organisation.id}))
            body = b"".join(answer.streaming_content) if answer.streaming else answer.content
            found = {secret for secret in secrets if secret.encode() in body}
            assert found == set(), f"{caller}: {name}"
            shown += answer.status_code == 200
    assert shown >= 2 * len(WITHOUT_IDS), "most roles see most of them"
