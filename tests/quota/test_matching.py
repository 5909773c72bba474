"""Which throttle rule holds for a client: the nearest alone, in Kafka's order."""

from dataclasses import replace

import pytest

from quota.contracts.instance import ContractError, InstanceSpec
from quota.contracts.rules import MOST_RULES, RuleKind, RuleSet, ThrottleRule, rules_problem
from quota.core.matching import RuleBook
from tests.quota.samples import spec


def client(users=(), clients=(), rule_id="r", produce=1000, consume=None):
    return ThrottleRule(rule_id, RuleKind.CLIENT, produce, consume, users=tuple(users), clients=tuple(clients))


def topic(*topics, rule_id="t", produce=1000, consume=None):
    return ThrottleRule(rule_id, RuleKind.TOPIC, produce, consume, topics=topics)


def group(*groups, rule_id="g", produce=None):
    return ThrottleRule(rule_id, RuleKind.GROUP, produce, 1000, groups=groups)


def pairs(users, clients, rule_id="p"):
    return client([f"{rule_id}u{n}" for n in range(users)], [f"c{n}" for n in range(clients)], rule_id)


NEAREST_FIRST = [
    client(["ann"], ["app"], "1"),
    client(["ann"], [None], "2"),
    client(["ann"], [], "3"),
    client([None], ["app"], "4"),
    client([None], [None], "5"),
    client([None], [], "6"),
    client([], ["app"], "7"),
    client([], [None], "8"),
]


@pytest.mark.parametrize("first", range(len(NEAREST_FIRST)))
def test_of_all_rules_that_fit_a_client_the_nearest_holds(first):
    book = RuleBook(NEAREST_FIRST[first:])
    assert book.of_client("ann", "app").rule is NEAREST_FIRST[first]


def test_a_rule_for_each_counts_every_client_for_himself_under_the_names_it_is_for():
    names = [RuleBook([rule]).of_client("ann", "app").names for rule in NEAREST_FIRST]
    assert names == [(), ("ann", "app"), (), ("ann", "app"), ("ann", "app"), ("ann",), (), ("app",)]


def test_whoever_is_named_by_no_rule_has_none():
    book = RuleBook([client(["bob"]), client([], ["other"]), topic("orders")])
    assert book.of_client("ann", "app") is None


def test_rules_come_back_from_the_spec_as_they_went_in():
    rules = RuleSet(
        7, (client(["ann", "bob"], [None], consume=5), topic("orders", "é", produce=None, consume=9), group("a"))
    )
    document = InstanceSpec.from_json(_with_rules(rules).to_json())
    assert document.rules == rules
    assert document == _with_rules(rules)


def _with_rules(rules):
    return replace(spec(), rules=rules)


def test_a_spec_without_rules_says_nothing_of_them():
    assert b"rules" not in spec().to_json()


def test_rules_of_a_kind_that_a_newer_writer_knows_are_left_out():
    data = _with_rules(RuleSet(1, (topic("orders"),))).to_json()
    assert InstanceSpec.from_json(data.replace(b'"kind":"topic"', b'"kind":"weather"')).rules == RuleSet(1, ())


@pytest.mark.parametrize(
    ("old", "new"), [(b"1000", b"0"), (b"1000", b"-1"), (b"1000", b"1.5"), (b"1000", b'"1"'), (b'"orders"', b"7")]
)
def test_a_rule_that_is_not_one_is_refused(old, new):
    data = _with_rules(RuleSet(1, (topic("orders"),))).to_json()
    with pytest.raises(ContractError):
        InstanceSpec.from_json(data.replace(old, new))


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ([topic("orders", produce=None)], "limits producing, consuming or both"),
        ([topic("orders", produce=0)], "at least 1 byte/s"),
        ([topic()], "names topics"),
        ([client()], "names users, clients or both"),
        ([client(["ann", None])], "names no others"),
        ([topic("")], "1 to 255 characters"),
        ([group()], "names consumer groups"),
        ([group("readers", produce=5)], "groups do not produce"),
        ([group("readers"), group("readers", rule_id="h")], "group readers has a throttle rule already"),
        ([topic("a"), topic("b", "a", rule_id="u")], "topic a has a throttle rule already"),
        ([client(["ann"], ["x", "y"]), client(["ann"], ["y"], "s")], "user ann and client-id y has a throttle rule"),
        ([client([None]), client([None], rule_id="s")], "user (default) has a throttle rule already"),
        ([topic(f"t{n}", rule_id=f"{n}") for n in range(MOST_RULES + 1)], "may have 100 throttle rules"),
        ([topic(*(f"t{n}" for n in range(1001)))], "may name 1000"),
        ([pairs(499, 499)], "may name 1000 pairs of a user and a client id, not 249001"),
        (
            [pairs(25, 20), pairs(25, 20, "u"), client(["ann"], rule_id="one more")],
            "1000 pairs of a user and a client id, not",
        ),
    ],
)
def test_what_cannot_stand_together_is_said(rules, said):
    assert said in rules_problem(rules)


def test_rules_that_name_different_things_stand_together():
    assert rules_problem([topic("a"), topic("b", rule_id="u"), group("a"), *NEAREST_FIRST]) is None
    assert rules_problem([pairs(25, 20), pairs(20, 25, "q")]) is None  # a thousand pairs, and not one more
    assert rules_problem([client([f"u{n}" for n in range(1000)])]) is None
