"""Which whitelists are taken, and what is said of the others."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.errors import Invalid
from controlplane.core.whitelist import MOST_ENTRIES, whitelist_parse, whitelist_widens


@pytest.mark.parametrize(
    ("given_blocks", "kept"),
    [
        ([], []),
        (["10.0.0.0/8"], ["10.0.0.0/8"]),
        (["10.1.2.3"], ["10.1.2.3/32"]),
        (["0.0.0.0/0", "::/0"], ["0.0.0.0/0", "::/0"]),
        (["2001:DB8::1"], ["2001:db8::1/128"]),
        (["10.0.0.0/8", "10.0.0.0/8"], ["10.0.0.0/8"]),
    ],
)
def test_blocks_are_kept_in_one_spelling(given_blocks, kept):
    assert whitelist_parse(given_blocks, field="cidrs") == kept


@pytest.mark.parametrize(
    "entry",
    ["", "x", "10.0.0.0/33", "10.0.0/8", "300.0.0.1", "10.0.0.0/255.0.0.0", "10.0.0.0/", "fe80::1%eth0", "::/129",
     "10.0.0.0/-1", " 10.0.0.0/8", "10.0.0.0/8\n", "010.0.0.1", "10.0.0.0/\uff18", 5, None, ["10.0.0.0/8"], True],
)  # fmt: skip
def test_what_is_not_a_block_is_refused_by_its_place(entry):
    with pytest.raises(Invalid) as refusal:
        whitelist_parse(["127.0.0.1", entry], field="cidrs")
    assert [problem.field for problem in refusal.value.errors] == ["cidrs.1"]


def test_host_bits_are_refused_with_the_block_that_may_be_meant():
    with pytest.raises(Invalid, match=r"did you mean 10\.0\.0\.0/8\?"):
        whitelist_parse(["10.0.0.1/8"], field="cidrs")


def test_there_is_a_limit():
    whitelist_parse([f"10.0.{n // 256}.{n % 256}" for n in range(MOST_ENTRIES)], field="cidrs")
    with pytest.raises(Invalid, match="at most 512"):
        whitelist_parse(["10.0.0.1"] * (MOST_ENTRIES + 1), field="cidrs")


@given(st.ip_addresses(), st.integers(0, 128))
def test_whatever_is_kept_is_a_network_that_holds_the_address_given(address, length):
    length = min(length, address.max_prefixlen)
    block = str(ip_network(f"{address}/{length}", strict=False))
    (kept,) = whitelist_parse([block], field="cidrs")
    assert ip_address(str(address)) in ip_network(kept)


@pytest.mark.parametrize(
    ("now", "wanted", "widens"),
    [
        (["10.0.0.0/8"], ["10.0.0.0/8"], False),
        (["10.0.0.0/8", "192.168.0.0/16"], ["10.1.0.0/16"], False),
        (["10.0.0.0/8"], [], False),
        (["0.0.0.0/0", "::/0"], ["10.0.0.0/8", "fd00::/8"], False),
        (["10.0.0.0/8"], ["10.0.0.0/8", "203.0.113.7"], True),
        (["10.1.0.0/16"], ["10.0.0.0/8"], True),
        (["0.0.0.0/0"], ["::/0"], True),
        ([], ["10.0.0.1/32"], True),
        (None, ["0.0.0.0/0"], False),
        (["10.0.0.0/8"], None, True),
        (None, None, False),
    ],
)
def test_a_list_is_wider_where_it_names_a_block_that_none_of_now_holds(now, wanted, widens):
    """None is whoever the wider list lets in."""
    assert whitelist_widens(now, wanted) is widens
