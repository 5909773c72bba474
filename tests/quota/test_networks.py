"""Blocks of addresses: as Python reads them, and without zones, which it would leave out when it compares."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from quota.contracts.acls import Acl, AclOperation, PatternType, Permission, ResourceType, acl_fault
from quota.contracts.apart import acls_from_json, acls_in_steps, joined, whitelists_json
from quota.contracts.instance import Authorizer, InstanceSpec, cidrs_of
from quota.contracts.networks import network_of, without_zone
from quota.core.acls import AclBook
from quota.steps import run_through
from tests.quota.samples import spec

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


@pytest.mark.parametrize("host", ZONED)
def test_an_acl_of_one_says_what_is_wrong_with_it(host):
    acl = Acl(ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:ann", host, AclOperation.READ, Permission.ALLOW)
    assert acl_fault(acl) == (
        "host",
        "a host is *, an address, or a CIDR; an address with a zone (%) cannot be matched: write it without",
    )


STORED = [("fe80::1%eth0", "fe80::1/128"), ("fe80::%1/64", "fe80::/64"), ("fe80::1%", "fe80::1/128")]
"""What ZooKeeper may still hold from before zones were refused, and what it has always meant when it was compared."""


@pytest.mark.parametrize(("text", "block"), STORED)
def test_a_stored_block_with_a_zone_is_read_without_it(text, block):
    assert cidrs_of(["10.0.0.0/8", text]) == ("10.0.0.0/8", block)
    assert network_of(without_zone(text)) == ip_network(block)


@pytest.mark.parametrize(("text", "block"), STORED)
def test_stored_acls_of_which_one_has_a_zone_are_legible_and_it_is_about_the_address(text, block):
    """Or one line from before would keep everybody out of the instance."""
    item = f'{{"host":"{text}","operation":"READ","pattern_type":"LITERAL","permission_type":"DENY",'
    item += '"principal":"User:ann","resource_name":"orders","resource_type":"TOPIC"}'
    data = f'{{"items":[{item}],"version":3}}'.encode()
    for found in (acls_from_json(data), run_through(acls_in_steps(data))):
        [acl] = found.items
        assert ip_network(acl.host) == ip_network(block)
        assert acl_fault(acl) is None
        assert (
            not AclBook(found.items, Authorizer())
            .decide("User:ann", "fe80::1", AclOperation.READ, ResourceType.TOPIC, "orders")
            .allowed
        )


def test_stored_whitelists_of_which_one_has_a_zone_are_legible():
    data = whitelists_json(1, ["10.0.0.0/8", "fe80::1%eth0"], {"orders": ["fe80::%1/64"]})
    found = joined(InstanceSpec.from_json(spec().head_json()), data, None)
    assert found.whitelist == ("10.0.0.0/8", "fe80::1/128")
    assert found.topic_whitelists == {"orders": ("fe80::/64",)}
