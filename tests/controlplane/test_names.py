"""Names that people give: one rule for all of them, by REST, in the console, and in the services underneath."""

from __future__ import annotations

import pytest

from controlplane.accounts import services as accounts
from controlplane.accounts.models import ApiKey, User
from controlplane.core.errors import Invalid
from controlplane.core.text import LONGEST_NAME, name_problem
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Organisation

from .console.conftest import problem_beside, visit
from .test_instances_api import problem

BAD = [
    "two\nlines",
    "bell\x07",
    "nul\x00",
    "escape\x1b[2J",
    "tab\there",
    "\x7f",
    "ne\x85xt",
    "\u202egnp.exe",
    "a\u200bb",
]
SAID = "Must hold printable characters only."


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_seen_is_refused(name):
    assert name_problem(name) == "must hold printable characters only"


@pytest.mark.parametrize("name", ["orders", "Zoë and co", "注文", "x" * LONGEST_NAME, "a b", "👩"])
def test_what_people_write_is_not(name):
    assert name_problem(name) is None


@pytest.mark.parametrize("name", ["", "  ", "x" * (LONGEST_NAME + 1)])
def test_nothing_and_too_much_are_refused(name):
    assert name_problem(name) is not None


@pytest.mark.parametrize("name", BAD)
def test_api_keys_and_instances_by_rest(alice, name):
    before = ApiKey.objects.for_organisation(alice.organisation).count()
    wanted = {"bandwidth_mib_per_s": 5, "storage_gib": 10, "partitions": 60, "whitelist": []}
    for path, body in (("api-keys", {}), ("instances", wanted)):
        told = problem(alice.api.post(f"/api/v1/{path}", {**body, "name": name}), 400, "invalid")
        assert [error["field"] for error in told["errors"]] == ["name"]
    assert ApiKey.objects.for_organisation(alice.organisation).count() == before


@pytest.mark.parametrize("name", ["bell\x07", "\u202egnp.exe"])
def test_api_keys_and_organisations_in_the_console(alice, name):
    at_alice = visit(alice)
    before = ApiKey.objects.for_organisation(alice.organisation).count()
    assert problem_beside(at_alice.post("keys", {"name": name}), "name") == SAID
    assert problem_beside(at_alice.client.post("/organisations/new", {"name": name}), "name") == SAID
    assert ApiKey.objects.for_organisation(alice.organisation).count() == before
    assert Organisation.objects.count() == 1


@pytest.mark.parametrize("field", ["name", "organisation_name"])
@pytest.mark.parametrize("name", ["bell\x07", "\u202egnp.exe"])
def test_a_sign_up_says_which_of_its_names_will_not_do(client, db, field, name):
    form = {"email": "d@example.com", "name": "Dora", "organisation_name": "mill", "password": "water over the wheel"}
    page = client.post("/sign-up", form | {field: name})
    assert page.status_code == 422
    assert problem_beside(page, field) == SAID
    assert not User.objects.exists()


@pytest.mark.parametrize("name", BAD)
def test_services_do_not_rely_on_who_calls_them(alice, name):
    with pytest.raises(Invalid):
        accounts.api_key_create(organisation=alice.organisation, user=alice.user, name=name)
    with pytest.raises(Invalid):
        tenants.organisation_create(name=name, owner=alice.user)
    with pytest.raises(Invalid):
        accounts.user_sign_up(email="e@example.com", password="water over the wheel", name=name)
