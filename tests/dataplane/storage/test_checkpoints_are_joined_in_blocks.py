"""A checkpoint of very many logs is made ready block by block, and says the same as if it were made at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.storage.checkpoints import formats
from dataplane.storage.checkpoints import lines as module
from dataplane.storage.checkpoints.lines import LINES_IN_A_BLOCK, Lines

KEYS = st.tuples(st.sampled_from("abc"), st.integers(0, 9))
STEPS = st.lists(
    st.one_of(st.tuples(KEYS, st.none() | st.integers(0, 5)), st.sampled_from(["join", "write"])), max_size=60
)


@given(STEPS)
def test_it_says_what_was_set_whenever_blocks_were_joined(steps):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LINES_IN_A_BLOCK", 4)
        patch.setattr(module, "SPARE_BLOCKS", 0)  # blocks are made anew often
        lines, model = Lines(), {}
        for step in steps:
            if step == "join":
                for number in lines.stale()[:2]:
                    lines.join(number)
                continue
            if step == "write":
                assert written(lines) == as_at_once(model)
                continue
            key, offset = step
            assert lines.set(key, offset) == (model.get(key) != offset)
            model.pop(key, None) if offset is None else model.update({key: offset})
        assert written(lines) == as_at_once(model)


def written(lines):
    return b"".join(lines.pieces())


def as_at_once(model):
    """In the order in which lines were made, whatever they said before."""
    return formats.content([f"{topic} {index} {offset}".encode() for (topic, index), offset in model.items()])


def test_blocks_that_have_lost_most_of_their_lines_are_made_anew():
    """Topics that come and go: else there would be a block for each that stays in the end."""
    lines = Lines()
    for index in range(64 * LINES_IN_A_BLOCK):
        lines.set(("topic", index), 0)
    model = {("topic", index): 0 for index in range(64 * LINES_IN_A_BLOCK)}
    for key in list(model):
        if key[1] % 100:
            lines.set(key, None)
            del model[key]
    assert len(lines.pieces()) == 1 + 64
    assert len(lines.stale()) == 1
    assert len(lines.pieces()) == 1 + 1
    for index in (1, 200, 64 * LINES_IN_A_BLOCK + 7):
        lines.set(("topic", index), 5)
        model["topic", index] = 5
    lines.set(("topic", 300), None)
    del model["topic", 300]
    assert written(lines) == as_at_once(model)
    for index in range(10_000, 10_000 + LINES_IN_A_BLOCK):
        lines.set(("more", index), 1)
    assert len(lines.pieces()) == 1 + 2, "new ones fill the last block"


def test_a_few_blocks_that_are_not_full_are_left_as_they_are():
    lines = Lines()
    for index in range(module.SPARE_BLOCKS * LINES_IN_A_BLOCK):
        lines.set(("topic", index), 0)
    for index in range(module.SPARE_BLOCKS * LINES_IN_A_BLOCK):
        if index % 100:
            lines.set(("topic", index), None)
    lines.pieces()
    assert lines.stale() == []


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
