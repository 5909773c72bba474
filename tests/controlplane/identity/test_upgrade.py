"""People, keys and second factors of a release before passkeys, service accounts and roles go on, on PostgreSQL as well."""

from __future__ import annotations

import pytest

from tests.support.django_process import answer_of

MILL, HARBOUR = "org-000000000001", "org-000000000002"
WHOLE = ["bob@example.com", "member", True, False, True]


@pytest.mark.timeout(300)
def test_a_database_of_before_goes_on_as_it_was(tmp_path, database_url):
    found = answer_of("tests.controlplane.identity.upgrade", tmp_path, database_url, within_s=270)
    assert found.pop("keys") == {
        "whole": WHOLE,
        "limited": ["address_not_allowed"],
        "expired": ["api_key_expired"],
        "revoked": ["unauthenticated"],
        "rotated": WHOLE,
        "earlier": WHOLE,
    }
    states = {"expired": "expired", "revoked": "revoked"}
    shown = found.pop("shown")
    assert {name: state for name, state, _ in shown} == {
        name: states.get(name, "active") for name in ("whole", "limited", "expired", "revoked", "rotated", "k")
    }
    assert {until for _, _, until in shown} == {None}, "none was made by single sign-on"
    assert found == {
        "signs": ["bob@example.com", True],
        "session": "2",
        "factors": [True, False],
        "app": True,
        "left": 2,
        "people": [["alice@example.com", True], ["bob@example.com", True], ["charlie@example.com", False]],
        "members": [
            [MILL, "alice@example.com", "owner", None],
            [MILL, "bob@example.com", "member", None],
            [MILL, "charlie@example.com", "owner", None],
            [HARBOUR, "alice@example.com", "owner", None],
        ],
        "invited": "dora@example.com",
        "nobody's key": [True, True],
        "service account": found["service account"],
        "required": [[MILL, True, ["alice@example.com"]], [HARBOUR, False, ["alice@example.com"]]],
        "used": 1,
        "codes for a passkey": 10,
        "a passkey": [True, True],
        "revoked": 0,
    }
    actor, *rest = found["service account"]
    assert actor.startswith("service account ci (svc-")
    assert rest == ["member", True, False, True]
