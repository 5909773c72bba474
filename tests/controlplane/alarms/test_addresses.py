"""Which addresses are public, one by one, and what the address of a webhook may be."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from controlplane.alarms.delivery.targets import LONGEST_URL, networks_of, target_of
from controlplane.core.addresses import is_public, is_within

PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "::ffff:8.8.8.8"]
NOT_PUBLIC = [
    "0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "100.64.0.1", "100.127.255.255", "192.0.0.1", "192.0.0.170", "192.0.2.1", "198.51.100.7",
    "203.0.113.9", "198.18.0.1", "198.19.255.255", "192.88.99.1", "224.0.0.1", "239.255.255.250", "240.0.0.1",
    "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::a00:1", "100::1", "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:a00:1::1",
    "3fff::1", "5f00::1", "fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "feff::1", "ff02::1", "ff0e::1",
    "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:127.0.0.1",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_anybody_may_have_these(address):
    assert is_public(address)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_these_are_nobodys_on_the_internet(address):
    assert not is_public(address)


@pytest.mark.parametrize("text", ["", "localhost", "1.2.3", "0x7f000001", "2130706433", "1.2.3.4.5", "::g"])
def test_what_is_no_address_is_said(text):
    with pytest.raises(ValueError):
        is_public(text)


def test_networks_hold_addresses_of_their_own_kind():
    networks = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]
    assert is_within("10.1.2.3", networks)
    assert is_within("::ffff:10.1.2.3", networks)
    assert is_within("fd00::7%eth0", networks)
    assert not is_within("11.0.0.1", networks)


INSIDE = networks_of("127.0.0.0/8, 10.3.0.0/16")


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("https://Hooks.Example.com", "hooks.example.com", 443, "/"),
        ("https://hooks.example.com./a/b?c=d", "hooks.example.com", 443, "/a/b?c=d"),
        ("https://hooks.example.com:8443/x", "hooks.example.com", 8443, "/x"),
        ("https://8.8.8.8/", "8.8.8.8", 443, "/"),
        ("https://[2606:4700:4700::1111]:8443/", "2606:4700:4700::1111", 8443, "/"),
    ],
)
def test_https_to_a_name_or_a_public_address_is_fine(url, host, port, path):
    found = target_of(url, ())
    assert (found.host, found.port, found.path, found.is_tls) == (host, port, path, True)


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/", "ftp://hooks.example.com/", "file:///etc/passwd", "//hooks.example.com", "https://", "",
        "https://user@hooks.example.com/", "https://u:p@hooks.example.com/", "https://hooks.example.com/#x",
        "https://hooks.example.com:22/", "https://hooks.example.com:80/", "https://hooks.example.com:0/",
        "https://hooks.example.com:99999/", "https://hooks.example.com/a b", "https://hooks.example.com/\r\nHost: evil",
        "https://hooks.example.com/é", "https://hooks.example.com/" + "a" * LONGEST_URL, "https://[fe80::1%25eth0]/",
        "https://127.0.0.1/", "https://169.254.169.254/latest/", "https://[::1]/", "https://[::ffff:10.0.0.1]/",
        "https://10.3.0.1/", "https://" + "a" * 254 + "/",
    ],
)  # fmt: skip
def test_anything_else_is_refused(url):
    with pytest.raises(ValueError):
        target_of(url, ())


def test_networks_of_the_installation_are_allowed_over_http_as_well():
    assert target_of("http://127.0.0.1:9000/x", INSIDE).port == 9000
    assert target_of("https://10.3.0.1/", INSIDE).host == "10.3.0.1"
    assert target_of("http://receiver.internal/", INSIDE).host == "receiver.internal"
    with pytest.raises(ValueError, match="no public address"):
        target_of("http://10.4.0.1/", INSIDE)
    with pytest.raises(ValueError, match="no public address"):
        target_of("http://8.8.8.8/", INSIDE)


@pytest.mark.parametrize("text", ["10.0.0.1/8", "somewhere", "10.0.0.0/8,x"])
def test_a_list_that_cannot_be_read_is_said(text):
    with pytest.raises(ValueError):
        networks_of(text)
