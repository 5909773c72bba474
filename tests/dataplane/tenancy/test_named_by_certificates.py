"""Who a client is by its certificate is found beside the loop: a tenant's rules may take long, and the loop is everybody's."""

from types import SimpleNamespace

import pytest

from dataplane.tenancy import certificates
from dataplane.tenancy.certificates import identify
from quota.contracts.instance import Route
from quota.core import principal_rules
from tests.support.certificates import Authority

RULES = ("RULE:^CN=([^,]+).*$/$1/",)
ME = Authority("A tenant").issue("me").der


@pytest.fixture
def asked(monkeypatch):
    """The subjects that rules were asked about."""
    found, name = [], principal_rules.PrincipalMapping.name
    monkeypatch.setattr(
        principal_rules.PrincipalMapping,
        "name",
        lambda mapping, subject: found.append(subject) or name(mapping, subject),
    )
    certificates._named.cache_clear()
    return found


def identified(rules):
    session = SimpleNamespace(principal="User:ANONYMOUS")
    problem = identify(session, Route("tls", {}, security="ssl", principal_mapping=rules), ME)
    return session.principal, problem


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (RULES, ("User:me", None)),
        (("RULE:^CN=you$/you/",), ("User:ANONYMOUS", "no rule makes a principal of the client's certificate")),
    ],
)
def test_what_was_found_beside_the_loop_is_not_asked_for_again(asked, rules, expected):
    certificates._named(rules, ME)
    assert len(asked) == 1
    assert identified(rules) == expected
    assert len(asked) == 1


def test_other_rules_are_asked(asked):
    certificates._named(RULES, ME)
    assert identified(("RULE:^CN=([^,]+).*$/$1/U",)) == ("User:ME", None)
    assert len(asked) == 2
