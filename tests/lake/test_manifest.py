"""What stands in a commit, read again; and what does not belong to us."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.lake.checksum import MODULUS, Total, record_bytes, record_total
from controlplane.lake.errors import LakeError, RequestError
from controlplane.lake.manifest import Manifest, Schema
from controlplane.lake.planning import Gap, Loaded, Plan, Span

SPANS = st.dictionaries(
    st.integers(0, 999), st.builds(Span, st.integers(0, 2**40), st.integers(2**41, 2**63 - 1)), max_size=3
)
TOTALS = st.builds(Total, st.integers(0, 2**40), st.integers(0, 2**50), st.integers(0, MODULUS - 1))
LOADED = st.builds(Loaded, st.text(), SPANS)
MANIFESTS = st.builds(
    Manifest,
    topic=st.text(),
    loaded=LOADED,
    schema=st.sampled_from([Schema(), Schema("given", {"type": "struct", "fields": [{"name": "a", "type": "long"}]})]),
    table=st.text(),
    sequence=st.integers(0, 2**63 - 1),
    load=st.text(),
    replaces=st.booleans(),
    partitions=st.dictionaries(
        st.integers(0, 999), st.tuples(st.builds(Span, st.integers(0), st.integers(0)), TOTALS), max_size=3
    ),
    problems=st.integers(0),
    gaps=st.lists(st.builds(Gap, st.integers(0, 9), st.builds(Span, st.integers(0), st.integers(0))), max_size=2).map(
        tuple
    ),
    earlier=st.lists(LOADED, max_size=2).map(tuple),
)
FIRST = Manifest("orders", Loaded("one", {}), Schema(), table="t")


@given(MANIFESTS)
def test_what_is_written_is_read_again(manifest):
    assert Manifest.from_json(manifest.to_json()) == manifest


@pytest.mark.parametrize("text", [None, "", "nightly optimize", "[]", "3", '{"batch": 7}', '{"sluice_lake'])
def test_other_peoples_commits_are_passed_over(text):
    assert Manifest.from_json(text) is None


def test_a_manifest_of_a_newer_release_is_refused():
    newer = json.loads(FIRST.to_json()) | {"sluice_lake": 2, "whatever": 1}
    with pytest.raises(LakeError, match="newer release"):
        Manifest.from_json(json.dumps(newer))


def test_commits_are_numbered_and_say_what_the_table_has_after_them():
    plan = Plan("one", {0: Span(0, 9), 1: Span(0, 3)}, gaps=(Gap(0, Span(9, 12)),))
    first = FIRST.following(plan, plan.spans, {0: Total(8, 100, 7)}, problems=2, load="a", first=False)
    assert (first.sequence, first.loaded.spans, first.gaps) == (1, {0: Span(0, 9), 1: Span(0, 3)}, ())
    assert first.partitions == {0: (Span(0, 9), Total(8, 100, 7)), 1: (Span(0, 3), Total())}
    second = first.following(plan, {0: Span(12, 20)}, {}, problems=0, load="b", first=True)
    assert (second.sequence, second.loaded.spans[0], second.gaps) == (2, Span(0, 20), plan.gaps)


def test_a_new_topic_begins_with_nothing_and_the_old_one_stays_on_record():
    old = dataclasses.replace(FIRST, loaded=Loaded("one", {0: Span(0, 9)}), sequence=5)
    new = old.for_topic("two")
    assert (new.loaded, new.earlier, new.sequence) == (Loaded("two", {}), (old.loaded,), 5)
    assert old.for_topic("one") is old


def test_a_table_keeps_its_schema():
    given_schema = Schema("given", {"type": "struct", "fields": [{"name": "a", "type": "long"}]})
    given_schema.check_same(Schema("inferred", given_schema.type))
    with pytest.raises(RequestError, match="another one is asked for"):
        given_schema.check_same(Schema())


def test_the_bytes_of_a_record_are_those_that_are_documented():
    written = record_bytes(2, 258, -1, b"k", None, [("h", b""), ("é", None)])
    assert written.hex(" ") == (
        "00 00 00 02 00 00 00 00 00 00 01 02 ff ff ff ff ff ff ff ff 00 00 00 01 6b ff ff ff ff"
        " 00 00 00 02 00 00 00 01 68 00 00 00 00 00 00 00 02 c3 a9 ff ff ff ff"
    )
    assert record_total(2, 258, -1, b"k", None, [("h", b""), ("é", None)]) == Total(1, 1, KNOWN)


KNOWN = 0x8DF3DA57F6B2BA67
"""The first eight bytes of `sha256sum` of those bytes."""

RECORDS = st.tuples(
    st.integers(0, 3), st.integers(0, 9), st.integers(-1, 9), st.none() | st.binary(max_size=3),
    st.none() | st.binary(max_size=3), st.lists(st.tuples(st.text(max_size=2), st.none() | st.binary(max_size=2)), max_size=2),
)  # fmt: skip


@given(RECORDS, RECORDS)
def test_different_records_have_different_bytes(one, other):
    assert (record_bytes(*one) == record_bytes(*other)) == (one == other)


@given(st.lists(RECORDS, max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_records_is_no_matter_and_parts_add_up(records, random):
    shuffled = random.sample(records, len(records))
    cut = random.randrange(len(records) + 1)
    whole = sum((record_total(*record) for record in records), Total())
    parts = [sum((record_total(*record) for record in part), Total()) for part in (shuffled[:cut], shuffled[cut:])]
    assert parts[0] + parts[1] == whole
