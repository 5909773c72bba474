"""Addresses from ZooKeeper: what nobody of a cluster can be at is never connected to."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.contracts.addresses import checked, checked_address, checked_http
from quota.contracts.instance import ContractError
from quota.contracts.mastership import Mastership

NO_HOSTS = ["", "169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "fe80::1%eth0", "0.0.0.0", "::", "224.0.0.1", "ff02::1",
            "255.255.255.255", "2852039166", "0xa9fea9fe", "0xa9.254.43518", "169.254.43518", "1.2.3", "a b", "a/b", "a@b",
            "a\nb", "-a", "a..b", "x" * 64, "ä", None, 7, b"a"]  # fmt: skip
NO_PORTS = [0, -1, 65_536, 99_999, 1.0, True, "80", None]
HOSTS = [
    "127.0.0.1",
    "10.0.0.1",
    "::1",
    "2001:db8::1",
    "broker-1",
    "broker-1.internal.",
    "b_1.example",
    "1and1.example",
]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("port", [1, 9092, 65_535])
def test_what_one_can_connect_to_stays_as_it_is(host, port):
    assert checked(host, port) == (host, port)


@pytest.mark.parametrize("host", NO_HOSTS, ids=repr)
def test_no_host(host):
    with pytest.raises(ContractError):
        checked(host, 80)


@pytest.mark.parametrize("port", NO_PORTS, ids=repr)
def test_no_port(port):
    with pytest.raises(ContractError):
        checked("broker-1", port)


@pytest.mark.parametrize("text", ["http://127.0.0.1:20031", "https://master-1:1", "http://[::1]:80"])
def test_a_server_of_http(text):
    assert checked_http(text) == checked_http(text + "/") == text


@pytest.mark.parametrize(
    "text",
    ["", "file:///etc/passwd", "file://a:1", "ftp://a:1", "gopher://a:1", "http://a", "http://a:0", "http://a:99999", "http://:1",
     "http://u@a:1", "http://u:p@a:1", "http://a:1/x", "http://a:1?x", "http://a:1#x", "http://169.254.169.254:80", "//a:1",
     "a:1", "http://a:1//", "http://a\\@b:1", "http://[::1:1", " http://a:1", "http://a:1 ", "http://a:1\n", None, 5],
)  # fmt: skip
def test_no_server_of_http(text):
    with pytest.raises(ContractError):
        checked_http(text)


@given(st.text(max_size=30))
def test_whatever_stands_there_is_an_address_or_refused(text):
    for check in (checked_address, checked_http):
        try:
            check(text)
        except ContractError:
            continue


@pytest.mark.parametrize(
    "change",
    [
        {"http": "file:///etc/passwd"},
        {"http": "http://a:0"},
        {"report": "a:99999"},
        {"report": "169.254.169.254:80"},
        {"report": 5},
    ],
    ids=str,
)
def test_a_mastership_has_addresses(change):
    document = {"id": 1, "epoch": 3, "report": "127.0.0.1:1", "http": "http://127.0.0.1:2"}
    assert Mastership.from_json(json.dumps(document).encode()).http == "http://127.0.0.1:2"
    with pytest.raises(ContractError):
        Mastership.from_json(json.dumps(document | change).encode())
