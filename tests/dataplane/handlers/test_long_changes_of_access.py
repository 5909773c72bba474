"""20,000 ACLs, filters, users in a request do not hold the loop: everything about them goes in short steps.

A step is measured by the functions that are called in it, as in test_long_answers.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from dataplane.doors import SetData
from dataplane.protocol.messages.security import (
    AclCreation,
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialUpsertion,
    UserName,
)
from quota.contracts.acls import MOST_ACLS, Acl, AclOperation, PatternType, Permission, ResourceType
from quota.contracts.apart import acls_path
from tests.dataplane.handlers.access import acls_in, call, cluster_with_access, specs, told, users_in
from tests.dataplane.handlers.test_long_answers import MOST_CALLS
from tests.simulation.cluster import INSTANCE
from tests.support.collecting import no_collection

MANY = 4_000
"""Of what a client sends in one frame; 20,000 would only take longer here."""


class Slices:
    """In place of a broker's: counts the calls between two pauses of every piece of work."""

    def __init__(self, real: Any) -> None:
        self._real, self.most, self.pauses, self._calls = real, 0, 0, 0

    def _note(self, _frame: Any, event: str, _argument: Any) -> None:
        self._calls += event in ("call", "c_call")

    def run(self, owner: str, steps: Any, **how: Any) -> Any:
        return self._real.run(owner, self._measured(steps), **how)

    def _measured(self, steps: Any) -> Any:
        while True:
            self._calls = 0
            sys.setprofile(self._note)
            try:
                work = next(steps)
            except StopIteration as stop:
                return stop.value
            finally:
                sys.setprofile(None)
                self.most = max(self.most, self._calls)
            self.pauses += 1
            yield work


@pytest.fixture(scope="module")
def cluster():
    made = cluster_with_access(seed=8)
    call(made, CreateAclsRequest((creation("first"),)))
    return made


def ask(cluster, request, version=3):
    """The answer, with no long step on its way."""
    broker = cluster.brokers[1]
    real, broker.slices = broker.slices, Slices(broker.slices)
    try:
        with no_collection():
            answer = call(cluster, request, version)
        found = broker.slices
    finally:
        broker.slices = real
    assert found.most <= MOST_CALLS, f"{found.most} calls without a pause"
    assert found.pauses >= 50
    return answer


def creation(name):
    return AclCreation(2, name, 3, "User:ann", "10.0.0.0/8", 3, 3)


def test_acls_by_the_thousand(cluster):
    call(cluster, DeleteAclsRequest((DeleteAclsFilter(1, None, 1, None, None, 1, 1),)))
    answer = ask(cluster, CreateAclsRequest(tuple(creation(f"t{n % 3_000:04}") for n in range(MANY))))
    assert {row.error_code for row in answer.results} == {0}
    assert len(acls_in(cluster).items) == 3_000


def test_those_that_are_refused(cluster):
    answer = ask(cluster, CreateAclsRequest((creation(""),) * MANY))
    assert {row.error_code for row in answer.results} == {42}


def test_listing_and_deleting_as_many_as_there_can_be(cluster):
    acl = Acl(ResourceType.TOPIC, PatternType.LITERAL, "", "User:ann", "*", AclOperation.READ, Permission.ALLOW)
    names = [f"t{n:04}" for n in range(MOST_ACLS)]
    full = acls_in(cluster).changed([Acl(acl.resource_type, acl.pattern_type, name, *_rest(acl)) for name in names])
    cluster.zookeeper.write([SetData(acls_path(INSTANCE), full.to_json())])
    told(cluster)
    cluster.until(lambda: all(spec.acls.version == full.version for spec in specs(cluster)))
    answer = ask(cluster, DescribeAclsRequest(1, None, 1, None, None, 1, 1))
    assert [resource.resource_name for resource in answer.resources] == names
    filters = [DeleteAclsFilter(2, f"t{n:04}" + "x" * (n % 2), 2 + n % 3 // 2, None, None, 1, 1) for n in range(MANY)]
    answer = ask(cluster, DeleteAclsRequest(tuple(filters)))
    gone = sum(len(row.matching_acls) for row in answer.filter_results)
    assert len(acls_in(cluster).items) == MOST_ACLS - gone
    assert gone == MANY // 2


def _rest(acl):
    return acl.principal, acl.host, acl.operation, acl.permission


def test_users_by_the_thousand(cluster):
    rows = tuple(ScramCredentialUpsertion(f"u{n}", 2, 4096, b"salt", bytes(64)) for n in range(MANY))
    answer = ask(cluster, AlterUserScramCredentialsRequest((), rows), 0)
    assert [row.error_code for row in answer.results] == [0] * 500 + [44] * (MANY - 500)
    assert len(users_in(cluster).items) == 500
    named = tuple(UserName(f"u{n}") for n in range(MANY))
    answer = ask(cluster, DescribeUserScramCredentialsRequest(named), 0)
    assert [row.error_code for row in answer.results] == [0] * 500 + [91] * (MANY - 500)
