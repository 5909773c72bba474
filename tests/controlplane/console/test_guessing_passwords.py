"""Whoever tries passwords is kept waiting, by account and by address, and learns nothing from it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth import hashers
from django.core.cache import cache
from django.test import Client
from redis.exceptions import RedisError

from controlplane.accounts import attempts
from controlplane.accounts.models import User
from controlplane.core import kept
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import TooManyAttempts
from controlplane.mail import outbox
from tests.support.ports import free_port
from tests.support.redis import RedisServer

from .conftest import problem_beside, text_of

RIGHT = "water over the wheel"
ACCOUNT, EVERYWHERE, ADDRESS = (attempts.MOST[kind] for kind in ("account", "everywhere", "address"))


@pytest.fixture
def now(monkeypatch):
    """Three minutes into a window; a list, so that a test can let time pass."""
    moment = [datetime(2026, 5, 1, 10, 3, tzinfo=UTC)]
    monkeypatch.setattr(type(SYSTEM_CLOCK), "now", lambda _self: moment[0])
    return moment


@pytest.fixture
def dora(db, now):
    return User.objects.create_user("dora@example.com", RIGHT)


@pytest.fixture
def mail_is_on(monkeypatch):
    """Whoever is kept out of a new browser can be mailed a link."""
    monkeypatch.setattr(outbox, "is_on", lambda: True)


def attempt(password="wrong", email="dora@example.com", address="10.0.0.1", **headers):
    return Client().post("/sign-in", {"email": email, "password": password}, REMOTE_ADDR=address, headers=headers)


def test_after_twenty_wrong_passwords_not_even_the_right_one_is_looked_at(dora, mail_is_on):
    for number in range(EVERYWHERE):
        assert attempt(address=f"10.0.0.{number}").status_code == 422
    page = attempt(RIGHT, address="10.0.1.1")
    assert (page.status_code, page["Retry-After"]) == (429, "720")
    assert "Too many attempts: try again in 12 minutes." in text_of(page)
    assert "sessionid" not in page.cookies


# --- where no mail is sent: nobody can be mailed a way into a new browser ------------------------------------------------------


def tried_from_everywhere(email="dora@example.com", tries=EVERYWHERE + 5):
    for number in range(tries):
        assert attempt(email=email, address=f"10.1.0.{number}").status_code == 422


def looked_at(address, email="dora@example.com"):
    """Whether a try is, without the cost of hashing."""
    try:
        attempts.attempt_begin(email=email, address=address)
    except TooManyAttempts:
        return False
    return True


def test_where_no_mail_is_sent_strangers_elsewhere_keep_nobody_out_of_a_new_browser(dora):
    tried_from_everywhere()
    assert attempt(RIGHT, address="10.0.1.1").status_code == 302


def test_there_who_was_wrong_waits_for_seconds_that_double_up_to_thirty(dora, now):
    tried_from_everywhere()
    waited = []
    for _ in range(7):
        assert attempt(address="10.0.1.1").status_code == 422
        page = attempt(RIGHT, address="10.0.1.1")
        assert page.status_code == 429, "not even the right one is looked at"
        waited.append(int(page["Retry-After"]))
        assert f"Others are trying this account: try again in {waited[-1]} s." in text_of(page)
        now[0] += timedelta(seconds=waited[-1])
    assert waited == [1, 2, 4, 8, 16, 30, 30]
    assert attempt(RIGHT, address="10.0.1.1").status_code == 302, "who waits gets in"


def test_there_whoever_comes_too_early_uses_up_nothing(dora, now):
    tried_from_everywhere()
    attempt(address="10.0.1.1")
    for _ in range(10 * ACCOUNT):
        assert attempt(RIGHT, address="10.0.1.1")["Retry-After"] == "1"
    now[0] += timedelta(seconds=1)
    assert attempt(RIGHT, address="10.0.1.1").status_code == 302


def test_there_an_account_that_does_not_exist_waits_like_one_that_does(dora):
    told = []
    for email in ("dora@example.com", "nobody@example.com"):
        tried_from_everywhere(email)
        pages = [attempt(email=email, address="10.0.1.1") for _ in range(2)]
        told.append([(page.status_code, text_of(page).replace(email, "")) for page in pages])
    assert told[0] == told[1]


@pytest.mark.parametrize("addresses", [["10.0.1.1"], [f"2001:db8:0:{site:x}::1" for site in range(40)]])
def test_there_guesses_of_a_network_are_bounded_by_the_day_however_patient_it_is(db, now, addresses):
    """A /48 of IPv6 is one. Others begin each window, so that the account is tried from many places all day long."""
    now[0] = datetime(2026, 5, 1, tzinfo=UTC)
    guesses = 0
    for _ in range(96):
        for number in range(EVERYWHERE):
            attempts.attempt_begin(email="e", address=f"10.1.0.{number}")
        for second in range(0, attempts.WINDOW_S, attempts.LONGEST_WAIT_S):
            address = addresses[second // attempts.LONGEST_WAIT_S % len(addresses)]
            guesses += looked_at(address, "e")
            guesses += looked_at(address, "e")
            now[0] += timedelta(seconds=attempts.LONGEST_WAIT_S)
    assert guesses == attempts.MOST_SLOWED_A_DAY


def test_there_all_networks_together_guess_as_often_as_they_are_many(db, now):
    now[0] = datetime(2026, 5, 1, tzinfo=UTC)
    for number in range(EVERYWHERE):
        attempts.attempt_begin(email="e", address=f"10.1.0.{number}")
    guesses = sum(looked_at(f"10.2.0.{number}", "e") for number in range(50) for _ in range(20))
    assert guesses == 50, "one at once for each, and the others wait"


def test_without_the_cache_tries_are_bounded_there_as_well(dora, away):
    tried_from_everywhere()
    told = [attempt(address="10.0.1.1").status_code for _ in range(ACCOUNT + 1)]
    assert told == [422] * ACCOUNT + [429]


# --- the same whether mail is sent or not --------------------------------------------------------------------------------------


def test_an_account_that_does_not_exist_waits_like_one_that_does(dora):
    answers = {
        email: [attempt(email=email, address="10.0.0.9") for _ in range(ACCOUNT + 1)]
        for email in ("dora@example.com", "nobody@example.com")
    }
    told = [
        [(page.status_code, text_of(page).replace(email, "")) for page in pages] for email, pages in answers.items()
    ]
    assert told[0] == told[1]
    assert told[0][-1][0] == 429


def test_spelling_an_email_in_another_way_is_no_new_account(dora):
    for number in range(ACCOUNT):
        attempt(email=[" Dora@Example.com", "DORA@example.com "][number % 2])
    assert attempt(RIGHT).status_code == 429


def test_when_the_window_is_over_one_may_try_again(dora, now):
    for _ in range(ACCOUNT + 3):
        attempt()
    now[0] += timedelta(minutes=12) - timedelta(seconds=1)
    page = attempt(RIGHT)
    assert (page.status_code, page["Retry-After"]) == (429, "1")
    assert "in 1 minute." in text_of(page)
    now[0] += timedelta(seconds=1)
    assert attempt(RIGHT).status_code == 302


def test_who_signs_in_has_all_attempts_again(dora):
    for _ in range(3):
        for _ in range(ACCOUNT - 1):
            assert attempt().status_code == 422
        assert attempt(RIGHT).status_code == 302


def test_a_stranger_keeps_nobody_out_of_where_they_have_signed_in_before(dora, mail_is_on):
    home = Client()
    typed = {"email": "Dora@example.com", "password": RIGHT}
    assert home.post("/sign-in", typed).status_code == 302
    home.post("/sign-out")
    for number in range(EVERYWHERE + 1):
        attempt(address=f"10.0.0.{number}")
    assert attempt(RIGHT, address="10.0.1.1").status_code == 429
    assert home.post("/sign-in", typed).status_code == 302
    home.post("/sign-out")
    for _ in range(ACCOUNT):
        assert home.post("/sign-in", typed | {"password": "wrong"}).status_code == 422
    assert home.post("/sign-in", typed).status_code == 429, "it has no more tries than others"


def test_a_browser_is_known_by_its_own_account_and_password_alone(dora):
    home = Client()
    home.post("/sign-in", {"email": "dora@example.com", "password": RIGHT})
    cookie = home.cookies["known_browser"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    User.objects.create_user("eve@example.com", RIGHT)
    for email, value in (("eve@example.com", cookie.value), ("dora@example.com", cookie.value[:-1] + "!")):
        browser = Client()
        browser.cookies["known_browser"] = value
        told = [browser.post("/sign-in", {"email": email, "password": "w"}).status_code for _ in range(ACCOUNT + 1)]
        assert told == [422] * ACCOUNT + [429]
        again = attempt(RIGHT, email=email, address="127.0.0.1")
        assert again.status_code == 429, "they were tries at the account"
    dora.set_password("another one of hers")
    dora.save()
    stolen = Client()
    stolen.cookies["known_browser"] = cookie.value
    assert stolen.post("/sign-in", {"email": "dora@example.com", "password": "w"}).status_code == 429


def test_one_stranger_keeps_nobody_out_of_a_new_browser_elsewhere(dora):
    for _ in range(10 * EVERYWHERE):
        attempt(address="10.0.0.1")
    assert attempt(RIGHT, address="10.0.0.1").status_code == 429
    assert attempt(RIGHT, address="10.0.1.1").status_code == 302


def test_a_stranger_who_is_refused_uses_up_nothing_of_others(dora):
    """In one network of IPv6 there are more addresses than anybody counts: they are one."""
    for number in range(3 * ACCOUNT):
        attempt(address=f"2001:db8::{number:x}")
    for number in range(EVERYWHERE - ACCOUNT - 1):
        assert attempt(address=f"10.0.2.{number}").status_code == 422
    assert attempt(RIGHT, address="10.0.1.1").status_code == 302


def test_a_neighbour_keeps_nobody_out_of_a_browser_that_is_known(dora):
    home = Client()
    typed = {"email": "dora@example.com", "password": RIGHT}
    assert home.post("/sign-in", typed, REMOTE_ADDR="10.0.0.1").status_code == 302
    home.post("/sign-out")
    for number in range(ADDRESS + 1):
        attempt(email=f"person{number}@example.com", address="10.0.0.1")
    assert attempt(RIGHT, address="10.0.0.1").status_code == 429
    assert home.post("/sign-in", typed, REMOTE_ADDR="10.0.0.1").status_code == 302


def test_one_address_cannot_try_one_password_on_every_account(dora):
    for number in range(ADDRESS):
        assert attempt(email=f"person{number}@example.com").status_code == 422
    assert attempt(RIGHT).status_code == 429
    assert attempt(RIGHT, address="10.0.0.2").status_code == 302


def test_an_address_of_ipv6_is_its_network(dora):
    for number in range(ADDRESS):
        attempt(email=f"person{number}@example.com", address=f"2001:db8::{number:x}")
    assert attempt(RIGHT, address="2001:db8::ffff").status_code == 429
    assert attempt(RIGHT, address="2001:db8:0:1::1").status_code == 302


def test_right_passwords_from_one_office_are_not_counted(dora):
    for _ in range(ADDRESS + 5):
        assert attempt(RIGHT).status_code == 302


def test_only_a_proxy_that_is_known_may_say_who_is_calling(dora, settings):
    for number in range(ADDRESS):
        attempt(email=f"person{number}@example.com", **{"X-Forwarded-For": f"10.9.9.{number}"})
    assert attempt(RIGHT, **{"X-Forwarded-For": "10.9.10.1"}).status_code == 429
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, tls=True)
    assert attempt(RIGHT, **{"X-Forwarded-For": "10.0.0.1, 10.9.10.1"}).status_code == 302
    assert attempt(RIGHT, **{"X-Forwarded-For": "10.9.10.1, 10.0.0.1"}).status_code == 429


@pytest.mark.parametrize("email", ["nobody@example.com", "keyed@example.com", "gone@example.com", "dora@example.com"])
def test_every_attempt_costs_one_hash(dora, email, monkeypatch):
    """Else the time would tell which accounts there are."""
    User.objects.create_user("keyed@example.com")  # without a password
    User.objects.create_user("gone@example.com", RIGHT, is_active=False)
    hasher = type(hashers.get_hasher())
    made, real = [], hasher.encode
    monkeypatch.setattr(hasher, "encode", lambda self, *args: made.append(1) or real(self, *args))
    page = attempt(email=email)
    assert problem_beside(page, "password") == "The email or the password is not right."
    assert len(made) == 1


# --- the cache is away ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def away(monkeypatch):
    """The cache does not answer; a list that, once it is emptied, says that it does again."""
    is_away = [True]

    def fail(name):
        def asked(*args, **options):
            if is_away:
                raise RedisError("away")
            return getattr(cache, name)(*args, **options)

        return staticmethod(asked)

    hanging = type("Hanging", (), {name: fail(name) for name in ("add", "get", "set", "incr", "decr", "delete_many")})
    for module in (kept, attempts):
        monkeypatch.setattr(module, "cache", hanging)
    return is_away


def test_without_the_cache_each_process_keeps_whoever_guesses_waiting(dora, away, mail_is_on):
    for _ in range(ACCOUNT):
        assert attempt().status_code == 422
    page = attempt(RIGHT)
    assert (page.status_code, page["Retry-After"]) == (429, "720")
    for number in range(EVERYWHERE - ACCOUNT):
        assert attempt(address=f"10.0.1.{number}").status_code == 422
    assert attempt(RIGHT, address="10.0.2.1").status_code == 429


def test_without_the_cache_one_password_is_not_tried_on_everybody(dora, away):
    for number in range(ADDRESS):
        assert attempt(email=f"somebody{number}@example.com").status_code == 422
    assert attempt(RIGHT).status_code == 429


@pytest.mark.parametrize("what", [attempts.CODE, attempts.PROOF])
def test_without_the_cache_codes_and_proofs_are_counted_as_well(away, now, what):
    for _ in range(ACCOUNT):
        attempts.attempt_begin(email="e", address="a", what=what)
    with pytest.raises(TooManyAttempts):
        attempts.attempt_begin(email="e", address="a", what=what)


def test_without_the_cache_proofs_in_sessions_of_providers_are_counted_by_the_day(away, now):
    for number in range(attempts.MOST_BY_PROVIDERS):
        assert attempts.by_provider_begin(email="e") == number + 1
    with pytest.raises(TooManyAttempts):
        attempts.by_provider_begin(email="e")


def test_without_the_cache_whoever_signs_in_begins_anew_and_another_window_as_well(dora, away, now):
    for _ in range(3):
        for _ in range(ACCOUNT - 1):
            assert attempt().status_code == 422
        assert attempt(RIGHT).status_code == 302
    for _ in range(ACCOUNT):
        attempt()
    assert attempt(RIGHT).status_code == 429
    now[0] += timedelta(minutes=12)
    assert attempt(RIGHT).status_code == 302


def test_a_cache_that_is_back_counts_on_from_what_it_knows(dora, away):
    for _ in range(ACCOUNT):
        attempt()
    away.clear()
    for _ in range(ACCOUNT):
        assert attempt().status_code == 422
    assert attempt(RIGHT).status_code == 429


@pytest.mark.integration
def test_attempts_are_counted_in_redis_and_by_each_process_without_it(settings, tmp_path, now):
    server = RedisServer(tmp_path / "redis", free_port())
    options = {"socket_connect_timeout": 1, "socket_timeout": 1}
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": f"redis://127.0.0.1:{server.port}/0",
            "OPTIONS": options,
        }
    }
    with server:
        for _ in range(ACCOUNT):
            attempts.attempt_begin(email="e", address="a")
        with pytest.raises(TooManyAttempts):
            attempts.attempt_begin(email="e", address="a")
        attempts.attempt_succeeded(email="e", address="a")
        attempts.attempt_begin(email="e", address="a")
    for _ in range(ACCOUNT):
        attempts.attempt_begin(email="e", address="a")
    attempts.attempt_succeeded(email="e", address="a")
    for _ in range(ACCOUNT):
        attempts.attempt_begin(email="e", address="a")
    with pytest.raises(TooManyAttempts):
        attempts.attempt_begin(email="e", address="a")
    cache.close()
