"""Blocks of addresses: as Python reads them, and without zones, which it would leave out when it compares."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from quota.contracts.acls import Acl, AclOperation, PatternType, Permission, ResourceType, acl_fault
from quota.contracts.instance import cidrs_of
from quota.contracts.networks import network_of

ZONED = ["fe80::1%eth0", "fe80::%1/64", "::ffff:10.0.0.1%lo", "fe80::1%", "10.0.0.1%eth0"]


@pytest.mark.parametrize("text", ["10.0.0.0/8", "10.0.0.7", "fd00::/8", "fe80::1"])
def test_blocks_and_addresses_are_read(text):
    assert network_of(text) == network_of(text, strict=True) == ip_network(text)


def test_bits_beyond_the_prefix_are_refused_where_that_is_asked_for():
    assert network_of("10.0.0.1/8") == ip_network("10.0.0.0/8")
    with pytest.raises(ValueError, match="host bits"):
        network_of("10.0.0.1/8", strict=True)


@pytest.mark.parametrize("text", ZONED)
def test_a_zone_is_refused_with_a_sentence(text):
    with pytest.raises(ValueError, match="zone"):
        network_of(text)
    with pytest.raises(ValueError, match="zone"):
        cidrs_of(["10.0.0.0/8", text])


@pytest.mark.parametrize("host", ZONED)
def test_an_acl_of_one_says_what_is_wrong_with_it(host):
    acl = Acl(ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:ann", host, AclOperation.READ, Permission.ALLOW)
    assert acl_fault(acl) == (
        "host",
        "a host is *, an address, or a CIDR; an address with a zone (%) cannot be matched: write it without",
    )
