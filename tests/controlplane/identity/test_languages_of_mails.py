"""Mails of accounts are in the language of whoever gets them: their own, or that of the page on which they signed up."""

from __future__ import annotations

import ast
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.test import Client
from django.utils import translation

from controlplane.accounts.identity import door, letters, signing_up
from controlplane.accounts.models import User
from controlplane.console.extraction import MAILED, ROOT
from controlplane.core.wording import said_in
from controlplane.instances import letters as of_instances
from controlplane.organisations import letters as of_organisations
from controlplane.policies import letters as of_policies
from controlplane.policies.rules import Loss

from .conftest import PASSWORD, person, sign_in

DORA, CHINESE = "dora@example.com", "zh-hans"
IN_CHINESE = {"headers": {"accept-language": "zh-CN"}}
CONFIRM, RESET, INVITED = "请确认您的邮箱地址", "设置新密码", "您被邀请加入 Sluice"
AT = datetime(2026, 12, 3, 10, tzinfo=UTC)
LINK = "https://console.example.com/x"


@pytest.fixture(autouse=True)
def afterwards_english():
    yield
    translation.activate("en")


def asked(mailbox, **options):
    """Dora signs up on a page in Chinese; the link in her mail."""
    Client().post("/sign-up", {"email": DORA, "name": "Dora", "organisation_name": "Mill"}, **IN_CHINESE | options)
    signing_up.answer()
    return mailbox.link(DORA)


def joined(mailbox):
    typed = {"name": "Dora", "password": PASSWORD, "organisation_name": "Mill"}
    Client().post(asked(mailbox), typed, **IN_CHINESE)
    return person(DORA)


def test_whoever_signs_up_on_a_page_in_chinese_is_written_to_in_chinese_from_the_first_mail_on(mailbox):
    user = joined(mailbox)
    assert mailbox.subjects(DORA) == [CONFIRM]
    body = mailbox.of(DORA)[0].get_content()
    assert "请在此设置密码" in body
    assert "如果不是您本人的操作" in body
    assert user.language == CHINESE


def test_a_reset_is_in_the_accounts_language_whatever_the_page_had(alice, mailbox):
    User.objects.filter(pk=alice.user.pk).update(language=CHINESE)
    door.note_write(kind="reset", email=alice.user.email)
    door.note_write(kind="browser", email=alice.user.email)
    door.notes_answer()
    assert mailbox.subjects(alice.user.email) == [RESET, "从新的浏览器登录"]


def test_a_stranger_who_types_an_address_does_not_choose_the_language_of_its_account(alice, mailbox):
    ask = {"email": alice.user.email, "name": "", "organisation_name": "Mill"}
    Client().post("/sign-up", ask, **IN_CHINESE)
    signing_up.answer()
    assert mailbox.subjects(alice.user.email) == ["You have an account already"]


def test_the_switch_of_whoever_is_signed_in_is_kept_with_their_account(at_alice, alice):
    at_alice.client.post("/language", {"language": CHINESE})
    alice.user.refresh_from_db()
    assert alice.user.language == CHINESE
    at_alice.client.post("/language", {"language": "tlh"})
    alice.user.refresh_from_db()
    assert alice.user.language == CHINESE, "no language of the service"


def test_the_switch_of_a_stranger_touches_no_account(alice):
    Client().post("/language", {"language": CHINESE})
    assert set(User.objects.values_list("language", flat=True)) == {"en"}


def test_an_invitation_is_in_the_inviters_language_or_in_that_of_the_account_it_goes_to(at_alice, alice, mailbox):
    User.objects.filter(pk=alice.user.pk).update(language=CHINESE)
    User.objects.create_user("eve@example.com", None)
    for address in (DORA, "eve@example.com"):
        at_alice.post("members", {"email": address, "role": "viewer"})
    assert mailbox.subjects(DORA) == [INVITED]
    assert mailbox.subjects("eve@example.com") == ["You are invited to Sluice"]


def test_whoever_joins_by_an_invitation_has_the_language_of_the_page(at_alice, alice, mailbox):
    at_alice.post("members", {"email": DORA, "role": "viewer"})
    answer = Client().post(mailbox.link(DORA), {"name": "Dora", "password": PASSWORD}, **IN_CHINESE)
    assert answer.status_code == 302
    assert person(DORA).language == CHINESE


def test_without_mail_the_page_still_says_which_language(db):
    typed = {"email": DORA, "name": "Dora", "organisation_name": "Mill", "password": PASSWORD}
    assert Client().post("/sign-up", typed, **IN_CHINESE).status_code == 302
    assert person(DORA).language == CHINESE
    assert sign_in(DORA)[1].status_code == 302


def all_letters():
    """Each function that makes one, with whatever decides what it says."""
    yield letters.verification(link=LINK, hours=24)
    yield letters.sign_up(link=LINK, hours=24)
    yield letters.signed_up_already(sign_in=LINK, forgotten=LINK)
    yield letters.address_change(link=LINK, hours=24, before="a@example.com")
    yield letters.address_changed(after="a@example.com")
    yield letters.password_reset(link=LINK)
    yield letters.browser(link=LINK)
    yield letters.password_changed()
    yield letters.proofs_used_up()
    for is_so in (True, False):
        yield letters.second_factor(is_on=is_so)
        yield letters.passkey(is_added=is_so)
    yield letters.single_sign_on_connected()
    yield letters.single_sign_on_released()
    yield letters.api_key_expiring(prefix="abc", expires_at=AT)
    yield letters.access_key_expiring(secret_id="abc", expires_at=AT)
    yield letters.service_account_key_expiring(prefix="abc", service_account_id="svc-1", expires_at=AT)
    yield letters.invitation(link=LINK, days=7, inviter="a@example.com")
    for name in ("harbour", ""):
        yield from of_an_organisation(of_organisations.About("org-1", name, LINK))
        yield from of_an_instance(of_instances.About("ins-1", name, LINK))


def of_an_organisation(about):
    for is_so in (True, False):
        yield of_organisations.made_owner(about, by="a@example.com", is_shut=is_so)
        yield of_organisations.stepped_down(about, by="a@example.com", is_shut=is_so)
        yield of_organisations.gave_ownership(about, to="b@example.com", is_owner=is_so, is_shut=is_so)
        yield of_organisations.taken_back(about, by="a@example.com", is_without_keys=is_so)
    yield of_organisations.marked(about, by="a@example.com", until=AT)
    yield of_organisations.near_its_end(about, until=AT)
    yield of_organisations.held_up(about)
    yield of_organisations.deleted(about, at=AT)


def of_an_instance(about):
    yield of_instances.isolated(about, until=AT)
    yield of_instances.expired(about, until=AT)
    for at_end in ("expire", "renew", "postpaid"):
        yield of_instances.ends_soon(about, at=AT, at_end=at_end)
    for months in (1, 3):
        yield of_instances.renewed(about, until=AT, months=months, price="CNY 2,610.00")
    for why in ("", "It was not isolated, since it is protected against deletion."):
        yield of_instances.goes_on_postpaid(about, at=AT, why=why)
    yield of_instances.elastic_spent(about, budget="CNY 100.00", until=AT)
    yield of_instances.near_its_end(about, until=AT)
    yield of_instances.destroyed(about, at=AT)
    sizes = "20 MiB/s of bandwidth, 100 GiB of storage, 90 partitions"
    yield of_instances.change_made(about, sizes=sizes, at=AT)
    yield of_instances.change_stuck(about, sizes=sizes, at=AT)
    for problem in ("", "there is no such cap"):
        yield of_instances.change_refused(about, sizes=sizes, at=AT, problem=problem and "数")
        yield of_policies.stuck(about, problem=problem and "数", at=AT)
    for losses in ([], [Loss("billing", "orders", 7, None), Loss("audit", "orders", 7, 2**20)] * 11):
        for names in ([], ["orders"], ["orders"] * 21):
            figures = {"topics": len(names) + len(losses), "names": names, "lost": len(losses), "losses": losses}
            yield of_policies.shortened(about, level_percent=80, records=1234, at=AT, **figures)
    yield of_policies.expanded(about, before_gib=10, after_gib=12.5, most_gib=20, price="CNY 120.00", at=AT)


def english_of(text):
    """Words that are left: of names, commands, addresses and units there is no other language."""
    kept = re.findall(
        r"\w+",
        "Sluice ACL API UTC sluice prepaid begin instance restore renew set at end expire elastic cap access key create "
        "harbour org ins svc slc abc example com a b MiB GiB s broker CNY https console x billing orders audit",
    )
    words = "".join(letter if letter.isascii() and letter.isalpha() else " " for letter in text).split()
    return [word for word in words if word not in kept]


def test_no_line_of_any_letter_is_left_in_english():
    left = {}
    for letter in all_letters():
        for text in (letter.subject, letter.body):
            for line in said_in(CHINESE, text).split("\n"):
                if english_of(line):
                    left[line] = english_of(line)
    assert left == {}


def test_every_function_that_makes_a_letter_is_among_them():
    made = {
        node.name
        for path in MAILED
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.FunctionDef) and node.returns is not None and ast.unparse(node.returns) == "Letter"
    }
    here = Path(__file__).read_text()
    assert [name for name in made if f".{name}(" not in here] == []


def test_in_english_a_letter_is_itself():
    for letter in all_letters():
        assert said_in("en", letter.body) == letter.body


def test_what_a_tenant_has_named_is_kept_as_it_is():
    about = of_instances.About("ins-1", "You are no owner any more.", LINK)
    assert "You are no owner any more. (ins-1)" in said_in(CHINESE, of_instances.destroyed(about, at=AT).body)


@pytest.mark.parametrize("size_bytes", [None, 2**20])
@pytest.mark.parametrize("language", ["en", CHINESE])
def test_a_group_writes_no_line_of_its_own_into_a_mail(language, size_bytes):
    about = of_instances.About("ins-1", "harbour", LINK)
    losses = [Loss("g\n\nSign in again: https://evil.example.com", "orders", 7, size_bytes)]
    figures = {"level_percent": 80, "topics": 1, "names": ["orders"], "records": 7, "lost": 7, "losses": losses}
    body = said_in(language, of_policies.shortened(about, at=AT, **figures).body)
    (line,) = (line for line in body.split("\n") if "evil" in line)
    assert line.startswith("    g\\n\\nSign in again")
