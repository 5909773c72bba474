"""What one alteration of client quotas costs does not grow with the rules that there are, nor with what they multiply to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.records.steps import run_through
from dataplane.throttle.client_quotas import ANY, EXACT, Component, Draft, Setting, described
from quota.contracts.rules import MOST_NAMES, MOST_RULES, Entity, RuleKind, ThrottleRule

PRODUCE, CONSUME = "producer_byte_rate", "consumer_byte_rate"
ANN = (("user", "ann"),)
HUGE = ThrottleRule(
    "huge",
    RuleKind.CLIENT,
    5,
    None,
    users=tuple(f"u{n}" for n in range(100_000)),
    clients=tuple(f"c{n}" for n in range(100_000)),
)
"""Whoever walks through what it names has ten thousand million things to look at."""


def _draft(*rules: ThrottleRule) -> Draft:
    return run_through(Draft.of(rules))


def _set(draft: Draft, entity: Entity, rate: float | None, key: str = PRODUCE) -> None:
    draft.alter(entity, [Setting(key, rate)], lambda: f"rule-{entity[-1][1]}")


def _user(name: str) -> Entity:
    return (("user", name),)


def test_an_alteration_does_not_walk_through_what_other_rules_multiply_to() -> None:
    draft = _draft(HUGE)
    _set(draft, ANN, None)
    _set(draft, (("user", "u7"), ("client-id", "other")), None)
    with pytest.raises(ApiError, match="rule huge names others as well"):
        _set(draft, (("user", "u7"), ("client-id", "c99")), 9.0)
    assert draft.rules == (HUGE,)


def test_a_filter_does_not_walk_through_it_either() -> None:
    def found(*components: Component, strict: bool = False) -> Sequence[Entity]:
        shown = run_through(described([HUGE], components, strict=strict))
        return [entity for entity, _ in shown]

    one = Component("user", EXACT, "u5"), Component("client-id", EXACT, "c6")
    assert found(*one) == [(("user", "u5"), ("client-id", "c6"))]
    assert found(Component("user", EXACT, "ann")) == []
    assert found(Component("user", ANY, None), strict=True) == []


def test_rules_are_altered_in_their_places_added_behind_and_taken_away() -> None:
    topic = ThrottleRule("t", RuleKind.TOPIC, 5, None, topics=("orders",))
    draft = _draft(topic)
    for name in ("ann", "bob", "cid"):
        _set(draft, _user(name), 10.0)
    _set(draft, _user("bob"), 20.0)
    _set(draft, _user("bob"), 7.0, CONSUME)
    _set(draft, ANN, None)
    assert [(r.id, r.produce_bytes_per_s, r.consume_bytes_per_s) for r in draft.rules] == [
        ("t", 5, None),
        ("rule-bob", 20, 7),
        ("rule-cid", 10, None),
    ]
    _set(draft, ANN, 1.0)
    assert draft.rules[-1].users == ("ann",)


def test_what_is_refused_changes_nothing() -> None:
    draft = _draft(ThrottleRule("ann", RuleKind.CLIENT, 5, None, users=("ann",)))
    before = draft.rules
    for key, rate in (("weather", 1.0), (PRODUCE, 0.5)):
        with pytest.raises(ApiError):
            draft.alter(ANN, [Setting(CONSUME, 9.0), Setting(key, rate)], lambda: "new")
    with pytest.raises(ApiError, match="named twice"):
        draft.alter(ANN, [Setting(PRODUCE, 1.0), Setting(PRODUCE, 2.0)], lambda: "new")
    assert draft.rules == before


def test_there_are_no_more_rules_and_names_than_may_be() -> None:
    draft = _draft()
    for n in range(MOST_RULES):
        _set(draft, _user(f"u{n}"), 1.0)
    with pytest.raises(ApiError) as refused:
        _set(draft, ANN, 1.0)
    assert (refused.value.code, refused.value.message) == (
        ErrorCode.INVALID_REQUEST,
        f"an instance may have {MOST_RULES} throttle rules",
    )
    _set(draft, _user("u5"), None)
    _set(draft, ANN, 1.0)

    names = ThrottleRule("t", RuleKind.TOPIC, 5, None, topics=tuple(f"t{n}" for n in range(MOST_NAMES - 1)))
    draft = _draft(names)
    with pytest.raises(ApiError) as refused:
        _set(draft, (("user", "ann"), ("client-id", "app")), 1.0)
    assert refused.value.message == (
        f"the throttle rules of an instance may name {MOST_NAMES} topics, clients and groups, not {MOST_NAMES + 1}"
    )
    _set(draft, ANN, 1.0)
    with pytest.raises(ApiError):
        _set(draft, _user("bob"), 1.0)
    _set(draft, ANN, 2.0)


def test_a_long_description_is_made_in_steps() -> None:
    rules = [
        ThrottleRule(f"r{n}", RuleKind.CLIENT, 5, None, users=tuple(f"u{n}-{m}" for m in range(100))) for n in range(10)
    ]
    assert len(run_through(described(rules, [], strict=False))) == 1000
    assert sum(1 for _ in described(rules, [], strict=False)) > 10
