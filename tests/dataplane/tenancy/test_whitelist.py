"""Which addresses a whitelist lets in."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.tenancy.whitelist import Whitelist


def test_an_empty_list_lets_nobody_in():
    assert not Whitelist([]).allows("127.0.0.1")
    assert not Whitelist([]).allows("::1")


def test_everybody_is_said_explicitly_and_per_family():
    assert Whitelist(["0.0.0.0/0"]).allows("8.8.8.8")
    assert not Whitelist(["0.0.0.0/0"]).allows("2001:db8::1")
    assert Whitelist(["0.0.0.0/0", "::/0"]).allows("2001:db8::1")


@pytest.mark.parametrize("peer", ["10.1.2.3", "::ffff:10.1.2.3"])
def test_an_ipv4_client_on_an_ipv6_socket_is_judged_by_its_ipv4_address(peer):
    assert Whitelist(["10.0.0.0/8"]).allows(peer)
    assert not Whitelist(["11.0.0.0/8"]).allows(peer)


def test_an_ipv6_scope_does_not_matter():
    assert Whitelist(["fe80::/10"]).allows("fe80::1%eth0")


@given(st.ip_addresses(v=4), st.ip_addresses(v=4), st.integers(0, 32))
def test_it_says_what_the_bits_say(address, network, length):
    cidr = str(ipaddress.ip_network(f"{network}/{length}", strict=False))
    same_bits = length == 0 or int(address) >> (32 - length) == int(network) >> (32 - length)
    whitelist = Whitelist([cidr])
    assert whitelist.allows(str(address)) is same_bits
    assert whitelist.allows(str(address)) is same_bits, "the remembered answer is another"
