"""Keys: what is sealed opens for its purpose, with whichever key of the ring it was, and not when anything of it was changed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.sealing.keyring import Key, Keyring, KeysProblem, Unreadable, drawn, is_of_before, key_name

FIRST, SECOND, THIRD = "A" * 43, "B" * 43, "C" * 43
TEXTS = st.binary(max_size=300)
PURPOSES = st.text(max_size=60)


def ring(*texts: str) -> Keyring:
    return Keyring.parse("\n".join(texts))


@given(TEXTS, PURPOSES)
def test_what_is_sealed_is_opened(text, purpose):
    assert ring(FIRST).opened(ring(FIRST).sealed(text, purpose), purpose) == text


@given(TEXTS, PURPOSES, PURPOSES)
def test_for_another_purpose_it_does_not_open(text, purpose, other):
    sealed = ring(FIRST).sealed(text, purpose)
    if other != purpose:
        with pytest.raises(Unreadable, match="another row, or changed"):
            ring(FIRST).opened(sealed, other)


@given(TEXTS, st.data())
def test_changed_in_one_bit_or_cut_it_does_not_open(text, data):
    sealed = ring(FIRST).sealed(text, "p")
    at = data.draw(st.integers(0, 8 * len(sealed) - 1))
    changed = bytearray(sealed)
    changed[at // 8] ^= 1 << at % 8
    for wrong in (bytes(changed), sealed[: data.draw(st.integers(0, len(sealed) - 1))], sealed + b"\0"):
        with pytest.raises(Unreadable):
            ring(FIRST, SECOND).opened(wrong, "p")


@given(TEXTS)
def test_the_first_seals_and_each_opens(text):
    before = ring(SECOND).sealed(text, "p")
    both = ring(FIRST, SECOND)
    assert both.opened(before, "p") == text
    assert not both.is_newest(before)
    after = both.sealed(text, "p")
    assert both.is_newest(after)
    assert ring(FIRST).opened(after, "p") == text
    with pytest.raises(Unreadable, match=f"the key {Key.of(FIRST).name.hex()}, which is not among the keys"):
        ring(SECOND, THIRD).opened(after, "p")


def test_the_same_text_is_sealed_otherwise_each_time():
    assert len({ring(FIRST).sealed(b"x", "p") for _ in range(50)}) == 50


@given(st.binary(max_size=80))
def test_what_nobody_has_sealed_is_told_so(data):
    if data[:1] != b"\x02":
        assert key_name(data) is None
        with pytest.raises(Unreadable, match="not sealed"):
            ring(FIRST).opened(data, "p")
    assert not (key_name(data) and is_of_before(data))


def test_a_file_may_hold_comments_and_the_padding_of_base64():
    found = Keyring.parse(f"# the present one\n\n  {FIRST}=  \n# before\n{SECOND}\n")
    assert [key.text for key in found.keys] == [FIRST, SECOND]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it holds no key"),
        ("# nothing\n\n", "it holds no key"),
        (f"{FIRST}\nhunter2-hunter2\n", "line 2: a key is 43 characters"),
        (FIRST + "A", "line 1: a key is 43 characters"),
        (FIRST[:-1] + "!", "line 1: a key is 43 characters"),
        (f"{FIRST} {SECOND}", "line 1: a key is 43 characters"),
    ],
)
def test_what_is_no_key_is_told_by_its_line_and_not_shown(text, told):
    with pytest.raises(KeysProblem, match=told) as problem:
        Keyring.parse(text)
    assert "hunter2" not in str(problem.value)
    assert FIRST not in str(problem.value)


def test_a_key_is_not_shown_where_a_ring_is_printed():
    assert FIRST not in repr(ring(FIRST, SECOND))


def test_one_that_is_drawn_is_a_line_of_the_file():
    one, other = drawn(), drawn()
    assert one != other
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", one)
    assert ring(one).keys[0].text == one
