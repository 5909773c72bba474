"""A checkpoint of very many logs is made ready block by block, and says the same as if it were made at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.storage.checkpoints import formats
from dataplane.storage.checkpoints import lines as module
from dataplane.storage.checkpoints.lines import LINES_IN_A_BLOCK, Lines

KEYS = st.tuples(st.sampled_from("abc"), st.integers(0, 9))
STEPS = st.lists(st.one_of(st.tuples(KEYS, st.none() | st.integers(0, 5)), st.just("join")), max_size=60)


@given(STEPS)
def test_it_says_what_was_set_whenever_blocks_were_joined(steps):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LINES_IN_A_BLOCK", 4)
        lines, model = Lines(), {}
        for step in steps:
            if step == "join":
                for number in lines.stale()[:2]:
                    lines.join(number)
                continue
            key, offset = step
            assert lines.set(key, offset) == (model.get(key) != offset)
            model.pop(key, None) if offset is None else model.update({key: offset})
        head, *rows = b"".join(lines.pieces()).decode().splitlines()
    assert (head, rows[0]) == (formats.VERSION, str(len(model)))
    assert {(topic, int(index)): int(offset) for topic, index, offset in map(str.split, rows[1:])} == model
    assert len(rows) == len(model) + 1


def test_one_change_costs_one_block():
    lines = Lines()
    for index in range(10 * LINES_IN_A_BLOCK):
        lines.set(("topic", index), 0)
    assert len(lines.stale()) == 10
    lines.pieces()
    assert lines.stale() == []
    lines.set(("topic", 3), 7)
    lines.set(("topic", 5), None)
    assert lines.stale() == [0]


def test_what_is_gone_before_its_block_is_joined_is_left_out():
    lines = Lines()
    lines.set(("topic", 0), 1)
    (number,) = lines.stale()
    lines.set(("topic", 0), None)
    lines.join(number)
    assert b"".join(lines.pieces()) == formats.content([])
