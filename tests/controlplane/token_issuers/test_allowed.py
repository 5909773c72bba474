"""From where keys may be fetched: the operator's list, and the addresses that names on it may have."""

from __future__ import annotations

import pytest

from controlplane.token_issuers.allowed import LONGEST_URL, key_address, places_of


def address(url, hosts):
    return key_address(url, places_of(hosts))


@pytest.mark.parametrize(
    ("hosts", "url", "host", "port", "target"),
    [
        ("login.example.com", "https://login.example.com/a/jwks?x=1", "login.example.com", 443, "/a/jwks?x=1"),
        ("login.example.com", "https://LOGIN.example.com.:443", "login.example.com", 443, "/"),
        ("a.b, id.example.com:8443", "https://id.example.com:8443/k", "id.example.com", 8443, "/k"),
        ("*.okta.com", "https://dev-1.okta.com/k", "dev-1.okta.com", 443, "/k"),
        ("*.okta.com", "https://a.b.okta.com/k", "a.b.okta.com", 443, "/k"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/k", "127.0.0.1", 8080, "/k"),
        ("[::1]:8443", "https://[::1]:8443/k", "::1", 8443, "/k"),
        ("keycloak.internal=10.3.0.0/16+fd00::/8", "https://keycloak.internal/k", "keycloak.internal", 443, "/k"),
    ],
)
def test_what_is_listed_may_be_asked(hosts, url, host, port, target):
    found = address(url, hosts)
    assert (found.host, found.port, found.target) == (host, port, target)


@pytest.mark.parametrize(
    ("hosts", "url"),
    [
        ("login.example.com", "https://example.com/k"),
        ("login.example.com", "https://login.example.com.evil.com/k"),
        ("login.example.com", "https://evil.com/login.example.com"),
        ("login.example.com", "https://login.example.com@evil.com/k"),
        ("login.example.com", "https://evil.com#@login.example.com/k"),
        ("login.example.com", "https://user:pw@login.example.com/k"),
        ("login.example.com", "https://login.example.com/k#x"),
        ("login.example.com", "https://login.example.com:8443/k"),
        ("login.example.com", "https://login.example.com:x/k"),
        ("login.example.com", "https://login.example.com:0/k"),
        ("login.example.com", "http://login.example.com/k"),
        ("login.example.com", "http://login.example.com:443/k"),
        ("login.example.com", "file:///etc/passwd"),
        ("login.example.com", "gopher://login.example.com/k"),
        ("login.example.com", "//login.example.com/k"),
        ("login.example.com", "https:///k"),
        ("login.example.com", ""),
        ("login.example.com", "https://login.example.com/a b"),
        ("login.example.com", "https://login.example.com/a\r\nHost: evil"),
        ("login.example.com", "https://login.example.com/\u00e9"),
        ("login.example.com", "https://login.example.com/" + "a" * LONGEST_URL),
        ("*.okta.com", "https://okta.com/k"),
        ("*.okta.com", "https://evilokta.com/k"),
        ("*.okta.com", "https://okta.com.evil.com/k"),
        ("*.okta.com", "https://evil.com\\.okta.com/k"),
        ("127.0.0.1", "https://2130706433/k"),
        ("127.0.0.1", "https://0x7f.1/k"),
        ("", "https://login.example.com/k"),
    ],
)
def test_nothing_else_may(hosts, url):
    with pytest.raises(ValueError):
        address(url, hosts)


@pytest.mark.parametrize(
    "text",
    [
        "ftp://a.b",
        "a.b/path",
        "a.b:x",
        "a.b=10.0.0.1/8",
        "a.b=here",
        "=10.0.0.0/8",
        "user@a.b",
        "a.*.b",
        "*",
        "https://",
    ],
)
def test_a_list_that_makes_no_sense_is_named(text):
    with pytest.raises(ValueError, match="is no host"):
        places_of(f"good.example.com,{text}")


PRIVATE = [
    "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "255.255.255.255",
    "224.0.0.1", "240.0.0.1", "192.0.2.1", "::", "::1", "fe80::1", "fe80::1%eth0", "fd00::1", "ff02::1", "2001:db8::1",
    "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1", "2002:a00:1::", "2001:0:a00:1::",
]  # fmt: skip


@pytest.mark.parametrize("ip", PRIVATE)
def test_a_name_with_an_address_inside_is_refused(ip):
    [place] = places_of("login.example.com")
    assert not place.allows(ip)


@pytest.mark.parametrize("ip", ["8.8.8.8", "::ffff:8.8.8.8", "2606:4700::1"])
def test_one_with_a_public_address_is_not(ip):
    [place] = places_of("login.example.com")
    assert place.allows(ip)


def test_networks_that_are_listed_with_it_are_all_that_it_may_be_in():
    [place] = places_of("keycloak.internal=10.3.0.0/16+fd00::/8")
    assert [place.allows(ip) for ip in ("10.3.1.1", "fd00::1", "10.4.0.1", "8.8.8.8", "127.0.0.1", "::1")] == [
        True, True, False, False, False, False,
    ]  # fmt: skip


def test_an_address_that_is_listed_allows_itself_only():
    [place] = places_of("http://127.0.0.1:8080")
    assert place.allows("127.0.0.1")
    assert not place.allows("127.0.0.2")
