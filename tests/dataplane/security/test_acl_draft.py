"""ACLs while a request changes them: what stood in their node before zones were refused included."""

import json
from dataclasses import replace

from dataplane.security.acl_draft import AclDraft
from quota.contracts.acls import Acl, AclOperation, PatternType, Permission, ResourceType
from quota.contracts.apart import acls_from_json
from quota.core.acl_filters import AclFilter
from quota.steps import run_through

ONE = Acl(ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:ann", "fe80::1", AclOperation.READ, Permission.ALLOW)


def stored(*hosts):
    items = [{**ONE.document(), "host": host} for host in hosts]
    return json.dumps({"items": items, "version": 3}, sort_keys=True, separators=(",", ":")).encode()


def test_acls_that_differ_in_a_zone_are_one_and_go_together():
    draft = run_through(AclDraft.of(stored("10.0.0.7", "fe80::1", "fe80::1%eth0", "fe80::1%eth1")))
    deleted = run_through(draft.delete({0: AclFilter(host="fe80::1")}))
    assert deleted == {0: [ONE]}
    assert [acl.host for acl in acls_from_json(run_through(draft.written())).items] == ["10.0.0.7"]


def test_whoever_changes_others_writes_them_without_a_zone():
    draft = run_through(AclDraft.of(stored("fe80::1%eth0", "fe80::1%eth1")))
    draft.add(ONE)
    assert run_through(draft.written()) is None  # it is there
    draft.add(replace(ONE, principal="User:bob"))
    after = run_through(draft.written())
    assert b"%" not in after
    assert acls_from_json(after).items == (ONE, replace(ONE, principal="User:bob"))
