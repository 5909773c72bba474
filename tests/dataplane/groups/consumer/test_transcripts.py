"""Whole stories of groups of the consumer protocol, compared as text."""

import pytest

from tests.dataplane.groups.consumer.transcripts import GOLDEN, STORIES


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_told_as_before(name):
    assert STORIES[name]().text() == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_each_transcript_has_its_story():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(STORIES)
