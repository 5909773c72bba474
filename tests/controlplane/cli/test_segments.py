"""A name that clients of Kafka chose is one segment of an address, and a segment is one name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.cli import operations as ops
from controlplane.cli.segments import marked, name_of, segment_of

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(NAMES)
def test_every_name_comes_back_from_its_segment(name):
    segment = segment_of(name)
    assert "/" not in segment
    assert segment not in (".", "..")
    assert name_of(segment) == name_of(marked(name)) == name


@pytest.mark.parametrize("name", ["billing", "a b", "größer", "...", "x~", "g:offsets"])
def test_ordinary_names_stand_as_they_are(name):
    assert segment_of(name) == name


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("a/b", "~YS9i"),
        (".", "~Lg"),
        ("..", "~Li4"),
        ("~x", "~fng"),
        ("x/topics/t", "~eC90b3BpY3MvdA"),
        ("a\0b", "~YQBi"),
        ("two\nlines", "~dHdvCmxpbmVz"),
        ("\x7f", "~fw"),
        ("\x9b", "~wps"),
    ],
)
def test_what_no_segment_can_be_is_written_in_base64(name, segment):
    assert segment_of(name) == segment


@pytest.mark.parametrize("segment", ["~", "~x", "~YS9i=", "~YS9i~", "~_w", "~YS9j!", "~é"])
def test_what_is_no_base64_of_a_name_is_no_name(segment):
    with pytest.raises(ValueError, match=r"."):
        name_of(segment)


def test_commands_write_it_so():
    ids = {"instance_id": "ins-k3v9x2qa", "group": "x/topics/t"}
    assert ops.GROUP_DELETE.at(**ids) == "/api/v1/instances/ins-k3v9x2qa/groups/~eC90b3BpY3MvdA"
    assert ops.GROUP.at(**{**ids, "group": "billing"}).endswith("/groups/billing")
    removal = ops.GROUP_MEMBER_REMOVE.at(instance_id="ins-k3v9x2qa", group="x", member="a/b")
    assert removal == "/api/v1/instances/ins-k3v9x2qa/groups/~eA/members/~YS9i", "never a longer name of another group"
    assert ops.USER.at(instance_id="ins-k3v9x2qa", user="..").endswith("/users/~Li4")
    assert ops.TOPIC.at(instance_id="ins-k3v9x2qa", topic="a/b").endswith("/topics/a%2Fb")
