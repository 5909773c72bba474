"""Where the service sends mail, signing up tells nobody who has an account: an account begins with the link of a mail."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from controlplane.accounts import attempts, joining
from controlplane.accounts import services as accounts
from controlplane.accounts.identity import signing_up, upkeep
from controlplane.accounts.models import SignUp, User
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Forbidden, NotFound
from controlplane.tenants import invitations
from controlplane.tenants.models import Membership, Organisation, Role
from tests.controlplane.console.conftest import problem_beside, text_of

from .conftest import PASSWORD, audited, person, sign_in

DORA = "dora@example.com"
LINK, KNOWN = "Confirm your e-mail address", "You have an account already"
HOUR = timedelta(hours=1)


def ask(email=DORA, organisation="Mill", name="Dora", **options):
    return Client().post("/sign-up", {"email": email, "name": name, "organisation_name": organisation}, **options)


def asked_link(mailbox, email=DORA, **typed):
    assert ask(email, **typed).status_code == 200
    signing_up.answer()
    return mailbox.link(email)


def choose(link, password=PASSWORD, organisation="Mill", **also):
    typed = {"name": "Dora", "password": password, "organisation_name": organisation, **also}
    return Client().post(link, typed, follow=True)


def everything_but(answer, email):
    """Of an answer, what could tell two apart. New each time: the id of the request, the tokens of forms, the second."""
    headers = {name: value for name, value in answer.items() if name not in ("X-Request-Id", "Expires")}
    body = re.sub(r"\b[A-Za-z0-9]{64}\b", "", answer.content.decode())
    return answer.status_code, headers, body.replace(email, "<address>"), set(answer.cookies)


# --- what strangers learn -------------------------------------------------------------------------------------------------

KNOWN_AND_NOT = ("alice@example.com", "alibi@example.com")


def test_the_answer_and_what_it_costs_are_the_same_whether_there_is_an_account_or_not(alice, mailbox):
    told, costs = [], []
    for email in KNOWN_AND_NOT:
        with CaptureQueriesContext(connection) as asked:
            answer = ask(email)
        told.append(everything_but(answer, email))
        costs.append([query["sql"].split()[:3] for query in asked.captured_queries])
    assert told[0] == told[1]
    assert costs[0] == costs[1]
    assert "A mail is on its way to <address>." in told[0][2]


def test_nor_do_refusals_tell(alice, mailbox, time):
    for typed in ({"organisation": ""}, {"name": "a\u202eb"}):
        known, unknown = (everything_but(ask(email, **typed), email) for email in KNOWN_AND_NOT)
        assert known == unknown
        assert known[0] == 422
    for _ in range(attempts.MOST_ASKED):
        ask("somebody@example.com", REMOTE_ADDR="10.0.0.9")
    known, unknown = (everything_but(ask(email, REMOTE_ADDR="10.0.0.9"), email) for email in KNOWN_AND_NOT)
    assert known == unknown
    assert "Too many attempts" in known[2]


def test_an_organisation_that_was_typed_is_not_taken_by_that(alice, mailbox):
    """Whoever signs up with two addresses and one name would learn by the second whether the first has an account."""
    for email in KNOWN_AND_NOT:
        assert ask(email, organisation="Probe").status_code == 200
    signing_up.answer()
    assert not Organisation.objects.filter(name="Probe").exists()
    told = [everything_but(ask(email, organisation=alice.organisation.name), email) for email in KNOWN_AND_NOT]
    assert told[0] == told[1], "and who is a customer is nobody's business either"
    assert told[0][0] == 200


def test_nobody_signs_in_before_the_link_was_used(alice, mailbox):
    """By that a stranger would learn that there was no account."""
    for email in KNOWN_AND_NOT:
        ask(email)
        signing_up.answer()
        assert sign_in(email, PASSWORD)[1].status_code == 422
    assert not User.objects.filter(email="alibi@example.com").exists()


# --- what the owner of the address learns ---------------------------------------------------------------------------------


def test_who_has_an_account_is_told_that_somebody_has_tried(alice, mailbox, time):
    at = time.now
    ask("alice@example.com", organisation="Not hers", REMOTE_ADDR="10.0.0.7")
    time.passes(timedelta(seconds=2))
    assert signing_up.answer() == 1
    (mail,) = mailbox.of("alice@example.com")
    assert mail["Subject"] == KNOWN
    text = mail.get_content().replace("\r\n", "\n")
    assert "https://sluice.example.com/sign-in\n" in text
    assert "https://sluice.example.com/password/forgotten\n" in text
    assert "Not hers" not in text, "what a stranger has typed is not what we write"
    assert audited("account.sign_up_asked") == [("alice@example.com", "alice@example.com", {})]
    (entry,) = alice.api.get("/api/v1/audit?action=account.sign_up_asked").json()["items"]
    assert (entry["address"], entry["at"][:19]) == ("10.0.0.7", at.isoformat()[:19])


def test_who_has_none_chooses_a_password_behind_the_link_and_is_in(mailbox):
    link = asked_link(mailbox)
    assert mailbox.subjects(DORA) == [LINK]
    page = Client().get(link)
    assert DORA in text_of(page)
    assert 'value="Mill"' in page.content.decode()
    assert not User.objects.exists(), "looking is not choosing"
    page = choose(link)
    assert "No instance yet" in text_of(page)
    assert person().email_verified_at is not None
    assert Membership.objects.get(user=person()).organisation.name == "Mill"
    assert sign_in()[1].status_code == 302
    assert mailbox.subjects(DORA) == [LINK], "there is nothing left to confirm"
    assert "Until then" not in text_of(page)


def test_a_link_works_once_and_for_a_day(mailbox, time):
    link = asked_link(mailbox)
    time.passes(timedelta(days=1) - timedelta(seconds=1))
    assert Client().get(link).status_code == 200
    time.passes(timedelta(seconds=1))
    page = choose(link)
    assert page.status_code == 404
    assert "This link is not valid any more: sign in if you have an account by it, or else sign up again." in text_of(
        page
    )
    assert not User.objects.exists()
    used = asked_link(mailbox)
    choose(used)
    assert Client().get(used).status_code == 404


def test_the_latest_link_and_those_before_lead_to_one_account(mailbox):
    first = asked_link(mailbox)
    second = asked_link(mailbox)
    assert first != second
    choose(first)
    assert choose(second, organisation="Second").status_code == 404
    assert User.objects.count() == Organisation.objects.count() == 1


@pytest.mark.parametrize(
    ("typed", "field", "said"),
    [
        ({"password": "short"}, "password", "This password is too short. It must contain at least 10 characters."),
        ({"organisation": "Taken"}, "organisation_name", "There is an organisation called Taken."),
        ({"organisation": " "}, "organisation_name", "This field is required."),
        ({"name": "a\u202eb"}, "name", "Must hold printable characters only."),
    ],
)
def test_what_is_wrong_stands_beside_it_and_the_link_is_good_as_before(mailbox, typed, field, said):
    Organisation.objects.create(id="org-taken0000000", name="Taken", created_at=SYSTEM_CLOCK.now())
    link = asked_link(mailbox)
    page = choose(link, **typed)
    assert page.status_code == 422
    assert problem_beside(page, field) == said
    assert not User.objects.filter(email=DORA).exists()
    assert "No instance yet" in text_of(choose(link))


def test_who_has_an_account_by_now_is_told_so_by_whoever_reads_their_mail_alone(mailbox):
    link = asked_link(mailbox)
    accounts.user_ensure(email=DORA, password=None)
    assert problem_beside(choose(link), "password") == "There is an account with this address; sign in instead."
    assert not Organisation.objects.exists()


def test_the_secret_of_a_link_is_in_no_row(mailbox):
    token = asked_link(mailbox).rpartition("/")[2]
    assert len(token) == 43
    assert token not in str(SignUp.objects.values().get())


@pytest.mark.parametrize("token", ["x", "\u00e9", "a" * 1000])
def test_what_is_no_link_is_not_there(mailbox, token):
    ask()  # nobody has looked yet: it has no secret
    assert Client().get(f"/sign-up/{token}").status_code == 404
    with pytest.raises(NotFound):
        signing_up.use(token=token)


# --- how often, and what is forgotten -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("email", "subject"), [(DORA, LINK), ("alice@example.com", KNOWN)])
def test_an_address_has_three_mails_an_hour_whoever_asks(alice, mailbox, time, email, subject):
    for number in range(5):
        ask(email, REMOTE_ADDR=f"10.0.0.{number}")
    assert signing_up.answer() == 5
    assert mailbox.subjects(email) == [subject] * 3
    time.passes(HOUR)
    ask(email)
    signing_up.answer()
    assert mailbox.subjects(email) == [subject] * 4


def test_one_address_cannot_have_mails_sent_to_a_hundred_strangers(mailbox):
    for number in range(20):
        assert ask(f"person{number}@example.com").status_code == 200
    page = ask("last@example.com")
    assert "Too many attempts" in text_of(page)
    assert SignUp.objects.count() == 20
    assert ask("last@example.com", REMOTE_ADDR="10.0.0.2").status_code == 200


def test_a_closed_account_has_no_mail(alice, mailbox):
    User.objects.filter(pk=alice.user.pk).update(is_active=False)
    ask("alice@example.com")
    signing_up.answer()
    assert mailbox.of("alice@example.com") == []


def test_one_is_answered_once_by_two_workers(mailbox, monkeypatch):
    ask()
    (asked,) = SignUp.objects.all()
    signing_up.answer()
    monkeypatch.setattr(SignUp.objects, "filter", lambda **asking: FoundEarlier(asked, asking))
    signing_up.answer()
    monkeypatch.undo()
    assert mailbox.subjects(DORA) == [LINK]


class FoundEarlier:
    """What the other worker has read before the first one's commit; updates go to the database."""

    def __init__(self, asked, asking):
        self.asked, self.rows = asked, SignUp._default_manager.get_queryset().filter(**asking)

    def order_by(self, _name):
        return [self.asked]

    def update(self, **values):
        return self.rows.update(**values)


def test_of_two_who_use_a_link_at_once_one_has_the_account(mailbox, monkeypatch):
    """The second one has found the link before the first one used it."""
    token = asked_link(mailbox).rpartition("/")[2]
    find, met = signing_up.find, []

    def found(**asked):
        row = find(**asked)
        if not met:
            met.append(True)
            joining.sign_up_confirm(token=token, password=PASSWORD, name="First", organisation_name="Mill")
        return row

    monkeypatch.setattr(signing_up, "find", found)
    with pytest.raises(NotFound):
        joining.sign_up_confirm(token=token, password=PASSWORD, name="Second", organisation_name="Second")
    assert not User.objects.filter(name="Second").exists()


def test_addresses_of_which_nothing_came_are_forgotten(mailbox, time):
    asked_link(mailbox)
    time.passes(timedelta(days=2))
    upkeep.keep_up()
    assert SignUp.objects.count() == 1
    time.passes(timedelta(seconds=1))
    upkeep.keep_up()
    assert not SignUp.objects.exists()


def test_nothing_is_sent_where_mail_was_switched_off_meanwhile(mailbox, settings):
    ask()
    settings.ENVIRONMENT = type(settings.ENVIRONMENT).read({})
    assert signing_up.answer() == 1
    assert mailbox.of(DORA) == []


# --- invitations ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def shown_link(alice, mailbox):
    """A link that an owner was shown, from when the service sent no mail."""

    def make(email):
        _, token = invitations.invitation_create(
            organisation=alice.organisation, inviter=alice.user, email=email, role=Role.MEMBER
        )
        return f"/invitations/{token}"

    return make


def test_a_link_that_an_owner_was_shown_tells_them_nothing(alice, charlie, shown_link, mailbox):
    told, costs = [], []
    for email in ("charlie@example.com", "charles@example.com"):
        path = shown_link(email)
        with CaptureQueriesContext(connection) as asked:
            answer = Client().post(path, {"name": "", "password": PASSWORD})
        status, headers, body, cookies = everything_but(answer, email)
        told.append((status, headers, body.replace(path, "<path>"), cookies))
        costs.append([query["sql"].split()[:3] for query in asked.captured_queries])
    assert told[0] == told[1]
    assert costs[0] == costs[1]
    assert "and then open the link of the invitation once more" in told[0][2]
    signing_up.answer()
    assert mailbox.subjects("charlie@example.com") == [KNOWN]
    assert mailbox.subjects("charles@example.com") == [LINK]


def test_who_has_confirmed_the_address_joins_by_opening_it_once_more(alice, shown_link, mailbox):
    path = shown_link(DORA)
    assert "You choose a password with it." in text_of(Client().get(path))
    Client().post(path, {"name": ""})
    signing_up.answer()
    browser = Client()
    link = mailbox.link(DORA)
    assert "Organisation" not in text_of(browser.get(link)), "she founds none"
    page = browser.post(link, {"name": "Dora", "password": PASSWORD}, follow=True)
    assert "Open the link of the invitation once more to join by it." in text_of(page)
    assert not Membership.objects.filter(user=person()).exists()
    browser.post(path)
    assert Membership.objects.get(user=person()).organisation == alice.organisation


def test_no_account_is_made_by_a_link_that_somebody_else_has_seen(shown_link):
    token = shown_link(DORA).rpartition("/")[2]
    with pytest.raises(Forbidden, match="sign up by the link that is mailed to the address"):
        joining.sign_up_invited(token=token, password=PASSWORD, name="")
    assert not User.objects.filter(email=DORA).exists()


def test_its_mails_are_counted_with_those_of_signing_up(shown_link):
    path = shown_link(DORA)
    for number in range(attempts.MOST_ASKED):
        ask(f"person{number}@example.com")
    page = Client().post(path, {"name": ""})
    assert page.status_code == 429
    assert "Too many attempts" in text_of(page)
    assert SignUp.objects.filter(email=DORA).count() == 0


def test_where_no_mail_is_sent_the_form_asks_for_the_password(db):
    assert 'name="password"' in Client().get("/sign-up").content.decode()


def at_once(address, email=DORA):
    typed = {"email": email, "name": "Dora", "organisation_name": "Mill", "password": PASSWORD}
    return Client().post("/sign-up", typed, REMOTE_ADDR=address)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "::ffff:8.8.8.8", "2600:1f18::7", "64:ff9b::808:808", "2002:808:808::1", "8.8.8.8:41234", "unknown"],
)
def test_where_no_mail_is_sent_strangers_neither_sign_up_nor_learn_who_has_an_account(alice, address):
    pages = [at_once(address, email) for email in (DORA, alice.user.email)]
    assert [page.status_code for page in pages] == [422, 422]
    assert "This installation sends no e-mail" in text_of(pages[0])
    assert text_of(pages[0]).replace(DORA, "") == text_of(pages[1]).replace(alice.user.email, "")
    assert not User.objects.filter(email=DORA).exists()


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "::1", "fe80::7%eth0", "fd00::7", "100.64.0.9", ""])
def test_where_no_mail_is_sent_whoever_is_on_the_same_network_signs_up(db, address):
    assert at_once(address).status_code == 302
    assert User.objects.filter(email=DORA).exists()
