"""What goes wrong is one sentence on standard error, nothing on standard output, and an exit status of its own."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
import requests

from controlplane.admission import installed
from controlplane.cli import client as http
from tests.controlplane.conftest import WANTED
from tests.support.ports import free_port

BOUGHT = ("--bandwidth", 5, "--storage", 10, "--partitions", 60)


def test_what_the_service_refuses_is_said_with_its_fields(as_alice):
    ran = as_alice("instance", "create", "x" * 200, "--bandwidth", 5, "--storage", 10, "--partitions", 60)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("sluice: The request is not valid: ")
    assert "\n  name: " in ran.err


def test_a_hint_says_which_option_is_meant(as_alice, brokers, monkeypatch):
    monkeypatch.setattr(installed, "price_confirmed_above", lambda _currency: Decimal(1))
    ran = as_alice("instance", "create", "dear", *BOUGHT)
    assert ran.status == 1
    assert "The price must be confirmed" in ran.err
    assert "--confirm-price" in ran.err
    assert as_alice("instance", "create", "dear", *BOUGHT, "--confirm-price").status == 0


@pytest.mark.parametrize(
    "typed",
    [
        ("instance", "resize", "ins-abcdefgh"),
        ("topic", "list"),
        ("topic", "list", "ins-abcdefgh", "--limit", "0"),
        ("topic", "create", "ins-abcdefgh", "orders", "--config", "novalue"),
        ("topic", "whitelist", "ins-abcdefgh", "orders", "--nobody", "--everyone"),
        ("instance", "limits", "ins-abcdefgh", "--topics", "many"),
        ("group", "reset-offsets", "ins-abcdefgh", "readers", "--to", "yesterday"),
        ("access", "acl", "remove", "ins-abcdefgh"),
        ("caps", "--output", "yaml"),
        ("nonsense",),
    ],
    ids=" ".join,
)
def test_wrong_usage_asks_the_service_nothing(as_alice, typed, monkeypatch):
    monkeypatch.setattr(requests.Session, "request", lambda *_args, **_options: pytest.fail("asked"))
    ran = as_alice(*typed)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err


def test_without_a_key(sluice):
    ran = sluice("instance", "list")
    assert (ran.status, ran.out) == (3, "")
    assert "sluice login" in ran.err


def test_with_a_key_that_is_not_valid(as_alice, monkeypatch):
    monkeypatch.setenv("SLUICE_API_KEY", "slc_nobodys")
    ran = as_alice("instance", "list")
    assert ran.status == 3
    assert "slc_nobodys" not in ran.err


@pytest.mark.parametrize(
    "typed",
    [("instance", "show", "ins-abcdefgh"), ("instance", "show", "no such name"), ("bill", "invoice", "inv-00000009")],
)
def test_what_is_not_there(as_alice, typed):
    ran = as_alice(*typed)
    assert (ran.status, ran.out) == (4, "")


def test_what_is_another_organisations_is_not_there(as_alice, instance, charlie, monkeypatch):
    monkeypatch.setenv("SLUICE_API_KEY", charlie.key)
    assert as_alice("instance", "show", instance.id).status == 4
    assert as_alice("instance", "show", instance.name).status == 4


def test_a_viewer_is_refused(as_alice, viewer, monkeypatch):
    monkeypatch.setenv("SLUICE_API_KEY", viewer.key)
    ran = as_alice("instance", "create", "mine", *BOUGHT)
    assert ran.status == 1
    assert "viewers" in ran.err


def test_nobody_listens(sluice, monkeypatch, worker):
    monkeypatch.setenv("SLUICE_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("SLUICE_API_KEY", "slc_x")
    worker.works = False  # there is no site at all
    ran = sluice("instance", "list")
    assert ran.status == 5
    assert "does not answer" in ran.err
    assert worker.pauses == list(http.PAUSES_S), "it was tried again before"


def test_the_cluster_is_away(as_alice, instance, admin):
    admin.away = True
    ran = as_alice("topic", "list", instance.id)
    assert ran.status == 5
    assert "Temporarily unavailable" in ran.err


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"hello": "world"}'])
def test_another_service_at_this_address(as_alice, home, monkeypatch, answer):
    def request(*_each, **_options):
        response = requests.Response()
        response.status_code, response._content = 200, answer
        return response

    monkeypatch.setattr(requests.Session, "request", request)
    assert as_alice("instance", "list").status == 5
    assert as_alice("login", "--url", "https://elsewhere.example.com", stdin="slc_x\n").status == 5
    assert not home.exists()


def test_an_operation_that_fails(as_alice, brokers, worker):
    brokers.unserved.add("ssl")
    made = as_alice("instance", "create", *map(str, (WANTED["name"], *BOUGHT)), "-o", "json")
    ran = as_alice("route", "create", made.json["id"], "--security", "ssl")
    assert (ran.status, ran.out) == (1, "")
    assert f"route.create of {made.json['id']} failed" in ran.err
    assert "sluice operation show op-" in ran.err


def test_an_operation_that_takes_too_long_goes_on(as_alice, brokers, worker):
    worker.works = False
    made = as_alice("instance", "create", "events", *BOUGHT, "--no-wait", "-o", "json")
    assert made.status == 0
    operation = made.json["operation_id"]
    ran = as_alice("operation", "wait", operation, "--timeout", 30)
    assert ran.status == 6
    assert f"sluice operation wait {operation}" in ran.err
    assert sum(worker.pauses) <= 30
    worker.works = True
    assert as_alice("operation", "wait", operation, "-o", "json").json["state"] == "succeeded"


def test_ctrl_c_ends_the_waiting_and_not_the_operation(as_alice, brokers, worker, monkeypatch):
    def interrupted(_seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(worker, "sleep", interrupted)
    ran = as_alice("instance", "create", "events", *BOUGHT)
    assert ran.status == 130
    assert "sluice operation wait op-" in ran.err


def test_another_name_deletes_nothing(as_alice, instance):
    ran = as_alice("instance", "delete", instance.id, stdin="event\n")
    assert ran.status == 2
    assert "nothing was changed" in ran.err
    assert as_alice("instance", "delete", instance.id, stdin="").status == 2
    assert as_alice("instance", "show", instance.id, "-o", "json").json["state"] == "running"


def loses_answers(monkeypatch, times):
    """The connection breaks `times` times when the answer to a POST is on its way; the keys that were sent."""
    left, keys, real = [times], [], requests.Session.request

    def request(session, method, *arguments, **options):
        answer = real(session, method, *arguments, **options)
        keys.append(options["headers"].get("Idempotency-Key"))
        if method == "POST" and left[0]:
            left[0] -= 1
            raise requests.exceptions.ConnectionError("the answer is lost")
        return answer

    monkeypatch.setattr(requests.Session, "request", request)
    return keys


def test_a_lost_answer_is_asked_for_again_and_nothing_is_bought_twice(as_alice, brokers, monkeypatch):
    keys = loses_answers(monkeypatch, times=2)
    assert as_alice("instance", "create", "events", *BOUGHT, "--no-wait").status == 0
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert len(as_alice("instance", "list", "-o", "json").json["items"]) == 1


def test_a_gateway_that_gives_up_is_asked_again(as_alice, monkeypatch, worker):
    real, left = requests.Session.request, [2]

    def request(*each, **options):
        if not left[0]:
            return real(*each, **options)
        left[0] -= 1
        response = requests.Response()
        response.status_code = 502
        return response

    monkeypatch.setattr(requests.Session, "request", request)
    assert as_alice("whoami").status == 0
    assert worker.pauses == [0.5, 1.0]
    left[0] = 99
    assert as_alice("whoami").status == 5


def test_a_refusal_is_not_asked_again(as_alice, monkeypatch, worker):
    keys = loses_answers(monkeypatch, times=0)
    assert as_alice("topic", "show", "ins-abcdefgh", "orders").status == 4
    assert (len(keys), worker.pauses) == (1, [])


def test_two_calls_have_two_keys(as_alice, brokers, monkeypatch):
    keys = loses_answers(monkeypatch, times=0)
    for _ in range(2):
        as_alice("instance", "create", "events", *BOUGHT, "--no-wait")
    assert len(set(keys)) == 2
    assert len(as_alice("instance", "list", "-o", "json").json["items"]) == 2


def test_a_redirection_is_not_followed_with_the_key(as_alice, monkeypatch):
    answer = requests.Response()
    answer.status_code = 302
    answer.headers["Location"] = "https://elsewhere.example.com/"
    monkeypatch.setattr(
        requests.Session, "request", lambda *_each, allow_redirects, **_options: allow_redirects or answer
    )
    assert as_alice("caps").status == 5


def test_json_has_the_answer_alone(as_alice, brokers):
    ran = as_alice("instance", "create", "events", *BOUGHT, "-o", "json")
    assert set(json.loads(ran.out)) == {"id", "operation_id"}
    assert ran.err == ""
