"""Filters of ACLs mean what Kafka's do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.contracts.acls import Acl, AclOperation, PatternType, Permission, ResourceType
from quota.contracts.instance import Authorizer
from quota.core.acl_filters import MATCH, AclFilter
from quota.core.acls import AclBook, Reason

ORDERS = Acl(ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:ann", "*", AclOperation.READ, Permission.ALLOW)
PREFIX = replace(ORDERS, pattern_type=PatternType.PREFIXED, resource_name="ord")
EVERY = replace(ORDERS, resource_name="*")
OTHER = replace(ORDERS, resource_name="clicks")
ALL = (ORDERS, PREFIX, EVERY, OTHER)


def taken(**members: object) -> list[Acl]:
    return [acl for acl in ALL if AclFilter(**members).takes(acl)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, [ORDERS, PREFIX, EVERY, OTHER]),
        ({"resource_name": "orders"}, [ORDERS]),
        ({"resource_name": "ord"}, [PREFIX]),
        ({"resource_name": "orders", "pattern_type": PatternType.LITERAL}, [ORDERS]),
        ({"resource_name": "orders", "pattern_type": PatternType.PREFIXED}, []),
        ({"pattern_type": PatternType.PREFIXED}, [PREFIX]),
        ({"resource_name": "*", "pattern_type": PatternType.LITERAL}, [EVERY]),
        ({"resource_name": "orders", "pattern_type": MATCH}, [ORDERS, PREFIX, EVERY]),
        ({"resource_name": "or", "pattern_type": MATCH}, [EVERY]),
        ({"pattern_type": MATCH}, [ORDERS, PREFIX, EVERY, OTHER]),
        ({"resource_type": ResourceType.GROUP}, []),
        ({"principal": "User:bob"}, []),
        ({"principal": "User:ann", "host": "*", "operation": AclOperation.READ}, [ORDERS, PREFIX, EVERY, OTHER]),
        ({"host": "10.0.0.1"}, []),
        ({"operation": AclOperation.ALL}, []),
        ({"permission": Permission.DENY}, []),
    ],
)
def test_it_takes_those_that_kafka_s_filter_takes(members: dict[str, object], expected: list[Acl]) -> None:
    assert taken(**members) == expected


NAMES = st.text("ab*", min_size=1, max_size=3)


@given(
    name=NAMES,
    patterns=st.lists(st.tuples(st.sampled_from(PatternType), NAMES), max_size=5),
)
def test_a_name_that_no_acl_matches_is_one_that_no_acl_decides(
    name: str, patterns: list[tuple[PatternType, str]]
) -> None:
    acls = [replace(ORDERS, pattern_type=kind, resource_name=pattern) for kind, pattern in patterns]
    matched = [acl for acl in acls if AclFilter(pattern_type=MATCH, resource_name=name).takes(acl)]
    book = AclBook(acls, Authorizer(allow_everyone_if_no_acl_found=False))
    decided = book.decide("User:ann", "10.0.0.1", AclOperation.READ, ResourceType.TOPIC, name)
    assert (decided.reason is Reason.NO_ACL) == (not matched)
