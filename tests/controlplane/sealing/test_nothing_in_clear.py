"""A dump of the database shows no secret; nor do logs, audit and exports."""

from __future__ import annotations

import io
import logging

from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from controlplane.accounts import services as accounts
from controlplane.accounts.identity import second_factor
from controlplane.alarms.delivery import outbox
from controlplane.alarms.models import Receiver
from controlplane.certificates import services as certificates
from controlplane.mail.outbox import mail_write
from controlplane.sealing.keyring import drawn
from tests.controlplane.certificates.test_certificates import (
    HOST,
    brought,
    routes,
    secure,
    tls_route,
    url,
)
from tests.support.certificates import Authority

from .conftest import NOW, everything

__all__ = ["secure"]

HOOK = "https://hooks.example.com/services/T0/B0/a-password"


def test_no_secret_stands_in_the_database_the_log_or_the_audit(tree, alice, secure, keys, caplog):
    caplog.set_level(logging.DEBUG)
    secrets: dict[str, str] = {"address of a webhook": "a-password"}

    routes(tree, secure, tls_route("r7", HOST), tls_route("r8", HOST))
    certificates.ensure_for(secure)
    issued = Authority("Theirs").issue("x", [HOST])
    answer = alice.api.put(url(secure, "routes/r7/certificate"), brought(issued))
    secrets["private key"] = issued.key_pem.splitlines()[1]

    made = alice.api.post(url(secure, "receivers"), {"name": "on call", "kind": "webhook", "address": HOOK})
    secrets["secret of a webhook"] = made.json()["secret"].removeprefix("whsec_")
    again = alice.api.post(url(secure, f"receivers/{made.json()['id']}/secret"))
    secrets["the next secret of a webhook"] = again.json()["secret"].removeprefix("whsec_")
    assert (answer.status_code, made.status_code, again.status_code) == (200, 201, 200)
    alice.api.post(url(secure, f"receivers/{made.json()['id']}/test"))

    second_factor.enrol_begin(user=alice.user)
    secrets["second factor"] = second_factor.secret_of(alice.user) or ""
    _, secrets["API key"] = accounts.api_key_create(organisation=alice.organisation, user=alice.user, name="k")
    mail_write(address="ann@example.com", subject="s", body="https://sluice.example.com/secret-link", at=NOW)
    secrets["link in a mail"] = "secret-link"
    browser = Client()
    browser.force_login(alice.user)
    secrets["cookie of a session"] = browser.cookies["sessionid"].value
    secrets["key of the rows"] = keys.first

    exported = io.StringIO()
    call_command("dumpdata", use_base_manager=True, stdout=exported)
    shown = {
        "database": everything(),
        "log": caplog.text,
        "audit": alice.api.get("/api/v1/audit").content.decode()
        + alice.api.get("/api/v1/audit.csv").getvalue().decode(),
        "dumpdata": exported.getvalue(),
        "list of receivers": "".join(alice.api.get(url(secure, "receivers")).content.decode().split(HOOK)),
        "what is waiting to be sent": str(outbox.claim()),
    }
    assert [(what, where) for what, secret in secrets.items() for where, text in shown.items() if secret in text] == []
    assert all(secrets.values())


def test_where_keys_are_lost_the_list_is_shown_and_the_message_says_what_is_wrong(alice, instance, keys):
    made = alice.api.post(url(instance, "receivers"), {"name": "on call", "kind": "webhook", "address": HOOK}).json()
    place = url(instance, f"receivers/{made['id']}")
    lost = keys.first
    keys.path.unlink()
    assert alice.api.get(place).json()["address"] == "https://hooks.example.com"
    assert alice.api.get(url(instance, "receivers")).status_code == 200
    browser = Client()
    browser.force_login(alice.user)
    page = browser.get(reverse("console:receivers", args=[alice.organisation.pk, instance.pk]))
    assert page.status_code == 200
    assert "https://hooks.example.com" in page.content.decode()
    assert alice.api.post(f"{place}/test").status_code == 202
    outbox.send_due()
    (sent,) = alice.api.get(f"{place}/messages").json()["items"]
    assert sent["error"] == "the address of this webhook cannot be read any more: make another receiver"
    answer = alice.api.post(url(instance, "receivers"), {"name": "other", "kind": "webhook", "address": HOOK})
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert Receiver.objects.unscoped("a test").count() == 1, "nothing is stored in clear instead"
    keys.say(lost)
    assert alice.api.get(place).json()["address"] == HOOK


def test_a_webhook_whose_secret_is_lost_can_have_another(alice, instance, keys):
    made = alice.api.post(url(instance, "receivers"), {"name": "on call", "kind": "webhook", "address": HOOK}).json()
    keys.say(drawn())
    again = alice.api.post(url(instance, f"receivers/{made['id']}/secret"))
    assert again.status_code == 200
    assert again.json()["previous_secret_until"] is None
