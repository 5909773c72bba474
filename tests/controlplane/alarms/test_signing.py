"""The signature of a webhook against what Standard Webhooks publishes, and by the example of our documentation."""

from __future__ import annotations

import base64

import pytest

from controlplane.alarms.delivery.signing import headers, secret_text

from .verifying import is_from_sluice, verified

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
KEY = base64.b64decode(SECRET.removeprefix("whsec_"))
# The example that implementations of Standard Webhooks test themselves with.
MESSAGE, TIMESTAMP, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def sent(*keys, timestamp=TIMESTAMP, body=BODY):
    return headers(keys, message_id=MESSAGE, timestamp=timestamp, body=body)


def test_it_is_the_signature_that_others_make():
    assert sent(KEY) == {
        "webhook-id": MESSAGE, "webhook-timestamp": str(TIMESTAMP), "webhook-signature": SIGNATURE,
    }  # fmt: skip
    assert secret_text(KEY) == SECRET


def test_the_example_takes_it_and_nothing_that_was_changed():
    assert verified(SECRET, sent(KEY), BODY)
    assert not verified(SECRET, sent(KEY), BODY + b" ")
    assert not verified(SECRET, sent(KEY) | {"webhook-id": "msg_other"}, BODY)
    assert not verified(SECRET, sent(b"another"), BODY)
    assert not verified(SECRET, sent(KEY) | {"webhook-signature": ""}, BODY)


@pytest.mark.parametrize(("away_s", "is_taken"), [(0, True), (299, True), (-299, True), (301, False), (-301, False)])
def test_the_example_refuses_what_is_minutes_away(away_s, is_taken):
    assert is_from_sluice(SECRET, sent(KEY), BODY, now=TIMESTAMP + away_s) is is_taken


def test_with_two_secrets_either_one_verifies_it():
    both = sent(KEY, b"other")
    assert verified(SECRET, both, BODY)
    assert verified(b"other", both, BODY)
