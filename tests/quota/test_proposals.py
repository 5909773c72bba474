"""Proposals and what brokers find of them are documents that both planes read, within bounds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.contracts import proposals
from quota.contracts.acls import Acl, AclOperation, PatternType, Permission, ResourceType
from quota.contracts.instance import ContractError
from quota.contracts.proposals import Cut, Findings, Proposal, Seen, proposal_problem
from quota.steps import run_through


def acl(name="orders", principal="User:bob", permission=Permission.ALLOW):
    return Acl(ResourceType.TOPIC, PatternType.LITERAL, name, principal, "*", AclOperation.READ, permission)


PROPOSAL = Proposal(
    "prp-4h2k9xw1qqqq",
    1_795_381_445_123,
    1_795_467_845_123,
    ("10.0.0.0/8",),
    {"r2": ()},
    (acl(),),
    (acl(permission=Permission.DENY),),
    False,
)
GOLDEN = (
    b'{"acls_added":[{"host":"*","operation":"READ","pattern_type":"LITERAL","permission_type":"ALLOW",'
    b'"principal":"User:bob","resource_name":"orders","resource_type":"TOPIC"}],'
    b'"acls_removed":[{"host":"*","operation":"READ","pattern_type":"LITERAL","permission_type":"DENY",'
    b'"principal":"User:bob","resource_name":"orders","resource_type":"TOPIC"}],"allow_everyone":false,'
    b'"ends_at_ms":1795467845123,"id":"prp-4h2k9xw1qqqq","made_at_ms":1795381445123,"route_whitelists":{"r2":[]},'
    b'"version":1,"whitelist":["10.0.0.0/8"]}'
)


def test_a_proposal_is_written_as_the_golden_bytes_and_read_back():
    assert PROPOSAL.to_json() == GOLDEN
    assert Proposal.from_json(GOLDEN) == PROPOSAL


def test_what_is_not_proposed_is_not_said_and_stays_none():
    proposal = Proposal("prp-x", 1, 2, route_whitelists={"r2": ("10.0.0.0/8",)})
    again = Proposal.from_json(proposal.to_json())
    assert (again, again.whitelist, again.allow_everyone, again.is_about_acls) == (proposal, None, None, False)


@pytest.mark.parametrize(
    "members",
    [
        {"version": 2},
        {"id": 7},
        {"ends_at_ms": "soon"},
        {"made_at_ms": True},
        {"whitelist": ["ten"]},
        {"route_whitelists": []},
        {"allow_everyone": "no"},
        {"acls_added": [{}]},
    ],
)
def test_what_is_no_proposal_is_refused(members):
    with pytest.raises(ContractError):
        Proposal.from_json(json.dumps({**json.loads(GOLDEN), **members}).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b"null"])
def test_what_is_no_document_is_refused(data):
    for kind in (Proposal, Findings):
        with pytest.raises(ContractError):
            kind.from_json(data)


def test_it_is_read_in_steps():
    proposal = Proposal("prp-x", 1, 2, acls_added=tuple(acl(f"topic-{number}") for number in range(100)))
    assert len(list(Proposal.reading(proposal.to_json()))) > 10


def test_acls_would_be_those_in_force_without_some_and_with_others():
    kept, gone, new = acl("a"), acl("b"), acl("c")
    proposal = Proposal("prp-x", 1, 2, acls_added=(new, kept), acls_removed=(gone,))
    assert proposal.acls_after([kept, gone]) == [kept, new]


def test_a_proposal_has_bounds():
    assert proposal_problem(PROPOSAL) is None
    many = tuple(acl(f"topic-{number}") for number in range(proposals.MOST_ACLS + 1))
    assert "500 ACLs" in proposal_problem(Proposal("prp-x", 1, 2, acls_added=many))
    long = tuple(acl("x" * 250 + str(number), "User:" + "y" * 250) for number in range(proposals.MOST_ACLS))
    assert "bytes" in proposal_problem(Proposal("prp-x", 1, 2, acls_added=long))


def test_findings_are_written_as_the_golden_bytes_and_read_back():
    findings = Findings(
        "prp-x", 5, 12, 4096, 1, {Cut("User:bob", "10.0.0.7", "r2", "WRITE", "TOPIC:orders"): Seen(3, 6, 9)}
    )
    data = run_through(findings.to_json())
    assert data == (
        b'{"connections":12,"left_out":1,"proposal":"prp-x","requests":4096,"since_ms":5,"version":1,'
        b'"items":[{"count":3,"first_ms":6,"last_ms":9,"operation":"WRITE","principal":"User:bob","resource":"TOPIC:orders",'
        b'"route":"r2","source":"10.0.0.7"}]}'
    )
    assert Findings.from_json(data) == findings


texts, moments = st.text(max_size=40), st.integers(0, 4_000_000_000_000)
cuts = st.dictionaries(
    st.builds(Cut, texts, texts, texts, texts, texts), st.builds(Seen, st.integers(1, 10**9), moments, moments)
)


@given(st.builds(Findings, texts, moments, moments, moments, moments, cuts))
def test_findings_are_read_back(findings):
    assert Findings.from_json(run_through(findings.to_json())) == findings


def test_findings_that_do_not_fit_are_counted(monkeypatch):
    monkeypatch.setattr(proposals, "LARGEST_FINDINGS", 1_000)
    many = {Cut("User:bob", "10.0.0.7", "r2", "WRITE", f"TOPIC:topic-{number}"): Seen(2, 6, 9) for number in range(50)}
    found = Findings.from_json(run_through(Findings("prp-x", 5, 0, 50, 7, many).to_json()))
    assert 0 < len(found.cuts) < 10
    assert found.left_out == 7 + 2 * (50 - len(found.cuts))


def test_findings_are_written_in_steps():
    many = {Cut("User:bob", "10.0.0.7", "r2", "WRITE", f"TOPIC:topic-{number}"): Seen(2, 6, 9) for number in range(500)}
    assert len(list(Findings("prp-x", 5, 0, 50, 0, many).to_json())) > 50


def test_brokers_are_added_up():
    seen = Seen(2, 60, 90)
    seen.add(Seen(3, 50, 70))
    assert seen == Seen(5, 50, 90)
