"""An instance's specification, its whitelists and its rules in nodes of their own: bytes, sizes, and when nobody gets in."""

import json
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.contracts.apart import (
    LARGEST_WHITELISTS,
    LARGEST_WRITE,
    joined,
    nodes_of,
    rules_path,
    spec_path,
    whitelists_json,
    whitelists_path,
    whitelists_problem,
    with_rules,
)
from quota.contracts.instance import ContractError, InstanceSpec, InstanceState, Limits, UnreadWhitelistsError
from quota.contracts.rules import LARGEST_RULES, RuleKind, RuleSet, ThrottleRule, rules_problem
from tests.quota.test_contracts import SPEC as PLAIN

GOLDEN = Path(__file__).parents[1] / "golden" / "contracts"
RULES = RuleSet(
    4,
    (
        ThrottleRule("rule-8zk2m4x0", RuleKind.TOPIC, 1_048_576, None, topics=("orders",)),
        ThrottleRule("rule-x0q1ab7c", RuleKind.CLIENT, None, 2_097_152, users=("alice",), clients=(None,)),
    ),
)
SPEC = replace(PLAIN, rules=RULES)
FILES = {"instance-2": spec_path, "whitelists": whitelists_path, "rules": rules_path}


def read(nodes, instance=SPEC.id):
    spec = InstanceSpec.from_json(nodes[spec_path(instance)])
    return joined(spec, nodes.get(whitelists_path(instance)), nodes.get(rules_path(instance)))


@pytest.mark.parametrize("name", FILES)
def test_each_node_is_the_golden_bytes(name):
    assert nodes_of(SPEC)[FILES[name](SPEC.id)] == (GOLDEN / f"{name}.json").read_bytes().rstrip(b"\n")


def test_the_golden_nodes_together_are_the_specification():
    nodes = {path(SPEC.id): (GOLDEN / f"{name}.json").read_bytes() for name, path in FILES.items()}
    assert read(nodes) == SPEC


def test_a_document_of_version_1_has_everything_in_it_whatever_stands_beside_it():
    old = InstanceSpec.from_json((GOLDEN / "instance.json").read_bytes())
    assert joined(old, None, None) == PLAIN
    assert joined(old, whitelists_json(99, (), {}), RULES.to_json()) == PLAIN


def network(address, length):
    return str(ip_network((address, length), strict=False))


cidrs = st.one_of(
    st.builds(network, st.integers(0, 2**32 - 1), st.integers(0, 32)),
    st.builds(network, st.integers(2**64, 2**128 - 1), st.integers(0, 128)),
)
whitelists = st.lists(cidrs, max_size=5).map(tuple)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
rule_sets = st.one_of(
    st.just(RuleSet()),
    st.builds(
        lambda version, topics: RuleSet(version, (ThrottleRule("r", RuleKind.TOPIC, 1, None, topics=tuple(topics)),)),
        st.integers(1, 2**40),
        st.lists(names, min_size=1, max_size=5),
    ),
)
amounts = st.one_of(st.none(), st.integers(0, 2**50))
specs = st.builds(
    lambda generation, state, limits, whitelist, topics, rules: replace(
        PLAIN,
        generation=generation,
        state=state,
        limits=Limits(*limits),
        whitelist=whitelist,
        topic_whitelists=topics,
        rules=rules,
    ),
    st.integers(1, 2**60),
    st.sampled_from(InstanceState),
    st.lists(amounts, min_size=len(Limits.__slots__), max_size=len(Limits.__slots__)),
    whitelists,
    st.dictionaries(names, whitelists, max_size=4),
    rule_sets,
)


@given(specs)
def test_any_specification_comes_back_from_its_nodes_and_from_the_one_document_of_version_1(spec):
    assert read(nodes_of(spec)) == spec
    assert joined(InstanceSpec.from_json(spec.to_json()), None, None) == spec


@given(before=specs, after=specs)
def test_who_reads_while_it_is_written_sees_whitelists_of_then_or_later_or_learns_that_it_did_not(before, after):
    after = replace(after, generation=before.generation + 1)
    old, new = nodes_of(before), nodes_of(after)
    torn = read({**new, spec_path(SPEC.id): old[spec_path(SPEC.id)]})
    assert (torn.generation, torn.whitelist) == (before.generation, after.whitelist)
    with pytest.raises(UnreadWhitelistsError, match="older"):
        read({**old, spec_path(SPEC.id): new[spec_path(SPEC.id)]})


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"{",
        b"[]",
        b'{"version":1}',
        b'{"version":1,"generation":7,"whitelist":["10.0.0.0/8"]}',
        b'{"version":1,"generation":7,"whitelist":["10.0.0.0/99"],"topics":{}}',
        b'{"version":1,"generation":7,"whitelist":["10.0.0.0/8"],"topics":[]}',
        b'{"version":1,"generation":"7","whitelist":["10.0.0.0/8"],"topics":{}}',
        b'{"version":1,"generation":6,"whitelist":["10.0.0.0/8"],"topics":{}}',
        b'{"version":2,"generation":7,"whitelist":["10.0.0.0/8"],"topics":{}}',
    ],
)
def test_whitelists_that_cannot_be_read_are_an_error_and_without_them_nobody_gets_in(data):
    spec = InstanceSpec.from_json(nodes_of(SPEC)[spec_path(SPEC.id)])
    assert (spec.whitelist, spec.topic_whitelists) == ((), {})
    with pytest.raises(UnreadWhitelistsError):
        joined(spec, data, None)


def test_rules_that_cannot_be_read_are_an_error_and_none_are_none():
    spec = InstanceSpec.from_json(nodes_of(SPEC)[spec_path(SPEC.id)])
    assert with_rules(spec, None).rules == RuleSet()
    assert with_rules(spec, RULES.to_json()).rules == RULES
    for data in (b"", b"[]", b'{"version":4}', b'{"version":4,"items":[{"kind":"topic"}]}'):
        with pytest.raises(ContractError):
            with_rules(spec, data)


@pytest.mark.parametrize("whitelists", [None, "7", 1.5, True])
def test_a_specification_says_which_whitelists_it_needs(whitelists):
    document = {**json.loads(nodes_of(SPEC)[spec_path(SPEC.id)]), "whitelists": whitelists}
    with pytest.raises(ContractError, match="whitelists"):
        InstanceSpec.from_json(json.dumps(document).encode())


def test_whitelists_are_bounded_by_what_a_node_can_hold_and_the_sentence_names_limit_and_size():
    longest = "2001:0db8:ffff:ffff:ffff:ffff:ffff:ffff/128"
    topics = {f"topic-{number}": [longest] * 512 for number in range(46)}
    size = len(whitelists_json(1, (), topics))
    assert size > 2**20
    problem = whitelists_problem((), topics)
    assert f"{LARGEST_WHITELISTS} bytes" in problem
    assert str(size)[:3] in problem
    assert whitelists_problem([longest] * 512, dict(list(topics.items())[:35])) is None
    assert LARGEST_WHITELISTS < LARGEST_WRITE < 2**20


def test_rules_are_bounded_by_what_a_node_can_hold_and_the_sentence_names_limit_and_size():
    rules = [
        ThrottleRule(f"r{n}", RuleKind.GROUP, None, 1, groups=tuple(f"{n}-{k}-" + "\U0001f600" * 240 for k in range(7)))
        for n in range(50)
    ]
    size = len(RuleSet(1, tuple(rules)).to_json())
    assert size > LARGEST_RULES
    problem = rules_problem(rules)
    assert f"{LARGEST_RULES} bytes" in problem
    assert str(size)[:3] in problem
    fit = rules[:40]
    assert rules_problem(fit) is None
    assert len(RuleSet(1, tuple(fit)).to_json()) <= LARGEST_RULES
