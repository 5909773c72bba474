"""Who may do what by ACLs: as Kafka decides it, whatever the index, and with the rule that decided."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.contracts.acls import ANYTHING, Acl, AclOperation, PatternType, Permission, ResourceType
from quota.contracts.instance import Authorizer
from quota.core.acls import PER_STEP, AclBook, Decision, Reason
from tests.quota import naive_acls

READ, WRITE, DESCRIBE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
CLOSED = Authorizer(allow_everyone_if_no_acl_found=False)
HOME = "10.0.0.7"

NAMES = st.text(alphabet="ab*", min_size=1, max_size=4)
PRINCIPALS = st.sampled_from(["User:ann", "User:bob", "User:*"])
ADDRESSES = st.sampled_from(["10.0.0.7", "10.0.1.7", "192.168.0.1", "::ffff:10.0.0.7", "2001:db8::7"])
HOSTS = st.sampled_from(
    ["*", "10.0.0.7", "10.0.0.0/24", "10.0.0.0/8", "10.9.9.9/8", "0.0.0.0/0", "2001:db8::/32", "2001:db8::7", "::/0"]
)
OPERATIONS = st.sampled_from(AclOperation)
ACLS = st.builds(
    Acl,
    st.sampled_from([TOPIC, GROUP]),
    st.sampled_from(PatternType),
    NAMES | st.just(ANYTHING),
    PRINCIPALS,
    HOSTS,
    OPERATIONS,
    st.sampled_from(Permission),
)
AUTHORIZERS = st.builds(Authorizer, st.booleans(), st.sampled_from([(), ("User:bob",)]))
CALLERS = st.sampled_from(["User:ann", "User:bob", "User:ANONYMOUS"])


def acl(name="orders", operation=READ, *, permission=Permission.ALLOW, prefixed=False, **members):
    return Acl(
        members.get("resource_type", TOPIC),
        PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        name,
        members.get("principal", "User:ann"),
        members.get("host", ANYTHING),
        operation,
        permission,
    )


def deny(*args, **members):
    return acl(*args, permission=Permission.DENY, **members)


def may(acls, operation=READ, name="orders", *, principal="User:ann", host=HOME, authorizer=CLOSED):
    return AclBook(acls, authorizer).decide(principal, host, operation, TOPIC, name)


@given(st.lists(ACLS, max_size=12), AUTHORIZERS, CALLERS, ADDRESSES, OPERATIONS, NAMES)
def test_the_index_decides_as_looking_at_every_rule_does(acls, authorizer, principal, host, operation, name):
    decision = AclBook(acls, authorizer).decide(principal, host, operation, TOPIC, name)
    allowed, reason, could_be = naive_acls.decide(acls, authorizer, principal, host, operation, TOPIC, name)
    assert (decision.allowed, decision.reason) == (allowed, reason)
    if reason is Reason.ACL:
        assert decision.acl in could_be
    else:
        assert decision.acl is None


@given(st.lists(ACLS, max_size=12), AUTHORIZERS, CALLERS, ADDRESSES, OPERATIONS)
def test_for_any_resource_of_a_type_it_decides_as_kafka_does(acls, authorizer, principal, host, operation):
    decision = AclBook(acls, authorizer).decide_by_type(principal, host, operation, TOPIC)
    assert decision.allowed == naive_acls.decide_by_type(acls, authorizer, principal, host, operation, TOPIC)
    if decision.acl is not None:
        assert decision.acl in acls
        assert (decision.acl.permission is Permission.ALLOW) == decision.allowed


def test_a_step_of_a_book_is_so_many_acls():
    acls = [acl(f"t{number}") for number in range(PER_STEP)]
    assert (sum(1 for _ in AclBook.building(acls[1:], CLOSED)), sum(1 for _ in AclBook.building(acls, CLOSED))) == (
        0,
        1,
    )


@given(st.lists(ACLS, max_size=3 * PER_STEP), CALLERS, ADDRESSES, OPERATIONS, NAMES)
def test_a_book_that_is_built_in_steps_is_the_same(acls, principal, host, operation, name):
    building, pauses = AclBook.building(acls, CLOSED), 0
    while True:
        try:
            next(building)
        except StopIteration as stop:
            book = stop.value
            break
        pauses += 1
    assert pauses == len(acls) // PER_STEP
    assert book.decide(principal, host, operation, TOPIC, name) == may(
        acls, operation, name, principal=principal, host=host
    )


def test_the_rule_that_decided_is_told():
    rule = acl("ord", prefixed=True)
    assert may([acl("other"), rule]) == Decision(allowed=True, reason=Reason.ACL, acl=rule)
    bar = deny(host="10.0.0.0/24")
    assert may([rule, bar]) == Decision(allowed=False, reason=Reason.ACL, acl=bar)
    assert may([rule, bar], host="10.0.1.1").acl == rule


@pytest.mark.parametrize("permission", Permission)
def test_of_several_rules_the_one_for_the_nearest_pattern_is_told(permission):
    near_to_far = [
        acl("orders", permission=permission),
        *(acl("orders"[:length], permission=permission, prefixed=True) for length in (6, 5, 3, 1)),
        acl(ANYTHING, permission=permission),
    ]
    while near_to_far:
        assert may(reversed(near_to_far)).acl == may(near_to_far).acl == near_to_far[0]
        near_to_far.pop(0)


def test_without_a_rule_the_reason_says_which_rule_there_is_not():
    assert may([]).reason is Reason.NO_ACL
    assert may([acl("other")]).reason is Reason.NO_ACL
    assert may([acl(principal="User:bob")]).reason is Reason.NONE_ALLOWS
    assert may([], authorizer=Authorizer()).reason is Reason.EVERYONE
    assert may([deny()], authorizer=Authorizer(super_users=("User:ann",))).reason is Reason.SUPER_USER


def test_a_rule_for_somebody_else_closes_a_resource_that_was_everyones():
    assert not may([acl(principal="User:bob")], authorizer=Authorizer()).allowed
    assert may([acl(principal="User:bob")], name="others", authorizer=Authorizer()).allowed


def test_a_rule_for_a_group_leaves_a_topic_of_its_name_alone():
    assert may([acl(resource_type=GROUP, principal="User:bob")], authorizer=Authorizer()).allowed


@pytest.mark.parametrize("operation", [READ, WRITE, AclOperation.DELETE, AclOperation.ALTER, ALL])
def test_who_may_use_a_topic_may_describe_it(operation):
    assert may([acl(operation=operation)], DESCRIBE).allowed


@pytest.mark.parametrize("operation", [AclOperation.CREATE, AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS])
def test_other_operations_do_not_imply_describe(operation):
    assert not may([acl(operation=operation)], DESCRIBE).allowed


def test_who_may_not_read_may_still_describe():
    assert may([acl(operation=WRITE), deny(operation=READ)], DESCRIBE).allowed
    assert not may([acl(operation=WRITE), deny(operation=ALL)], DESCRIBE).allowed


def test_a_star_is_everything_only_where_it_is_literal():
    assert may([acl(ANYTHING)]).allowed
    assert not may([acl(ANYTHING, prefixed=True)]).allowed


def test_ipv4_in_ipv6_is_ipv4_on_both_sides():
    assert may([acl(host="10.0.0.0/8")], host="::ffff:10.0.0.7").allowed
    assert may([acl(host="::ffff:10.0.0.7")], host="10.0.0.7").allowed
    assert may([acl(host="::ffff:10.0.0.0/104")], host="10.0.0.7").allowed
    assert not may([acl(host="::/0")], host="10.0.0.7").allowed
    assert may([acl(host="fe80::/10")], host="fe80::1%eth0").allowed


def test_only_a_book_without_rules_that_allows_everyone_allows_everything():
    assert AclBook([], Authorizer()).allows_everything
    assert not AclBook([], CLOSED).allows_everything
    assert not AclBook([deny(resource_type=GROUP)], Authorizer()).allows_everything


@given(st.lists(ACLS, max_size=3 * PER_STEP), st.booleans())
def test_a_book_that_is_let_go_holds_nothing_and_permits_nothing(acls, everyone):
    book = AclBook(acls, Authorizer(everyone))
    book.decide("User:ann", HOME, READ, TOPIC, "a")
    types = list(book._types.values())
    for _ in book.letting_go():
        assert not book.decide("User:ann", HOME, READ, TOPIC, "a").allowed
    assert not any(patterns.literal or patterns.prefixed for patterns in types)
    assert not book.decide("User:ann", HOME, READ, TOPIC, "a").allowed


def test_a_book_is_let_go_a_step_at_a_time():
    book = AclBook([acl(f"t{number}") for number in range(3 * PER_STEP + 1)], CLOSED)
    for number in range(PER_STEP):
        book.decide("User:ann", HOME, READ, TOPIC, f"t{number}")
    assert sum(1 for _ in book.letting_go()) == 4, "what it remembers, and its rules"


def test_what_a_book_remembers_and_its_rules_share_a_step():
    book = AclBook([acl(f"t{number}") for number in range(PER_STEP - 5)], CLOSED)
    for number in range(5):
        book.decide("User:ann", HOME, READ, TOPIC, f"t{number}")
    (types,) = book._types.values()
    left = [len(types.literal) for _ in book.letting_go()]
    assert left == [0], "the only pause comes after 16 of both"


@pytest.mark.parametrize(
    ("denied", "allowed", "may_one"),
    [
        (["a"], "b", True),
        (["a"], "ab", False),
        (["a", "ab"], "ac", False),
        (["ab", "b"], "ac", True),
        (["ab", "b"], "bc", False),
        (["ab", "ac", "b"], "acd", False),
        (["ab"], "a", True),  # of what begins with a, not all begins with ab
    ],
)
def test_some_resource_may_be_used_where_not_all_that_a_rule_allows_is_denied(denied, allowed, may_one):
    rule = acl(allowed, prefixed=True)
    decision = AclBook([*(deny(prefix, prefixed=True) for prefix in denied), rule], CLOSED).decide_by_type(
        "User:ann", HOME, READ, TOPIC
    )
    assert decision == (Decision(True, Reason.ACL, rule) if may_one else Decision(False, Reason.NONE_ALLOWS, None))


@pytest.mark.parametrize("authorizer", [CLOSED, Authorizer()])
def test_who_is_denied_all_resources_of_a_type_may_use_none_of_them(authorizer):
    def any_topic(*rules, principal="User:ann", operation=READ):
        return AclBook(rules, authorizer).decide_by_type(principal, HOME, operation, TOPIC)

    bar, allowed = deny(ANYTHING), acl("orders")
    assert any_topic(allowed, bar) == Decision(False, Reason.ACL, bar)
    assert any_topic(allowed, deny(ANYTHING, host="10.9.9.9")).allowed
    assert any_topic(allowed, acl("orders", WRITE), bar, operation=WRITE).allowed
    for_all = deny(ANYTHING, principal="User:*")
    assert any_topic(allowed, for_all).acl == any_topic(allowed, for_all, principal="User:bob").acl == for_all
    assert any_topic(allowed, deny("orders", prefixed=True), bar).acl == bar


def test_what_is_remembered_is_bounded_and_no_other_answer():
    book = AclBook([acl("kept", host=HOME)], CLOSED)
    for number in range(10_000):
        assert not book.decide("User:ann", HOME, READ, TOPIC, f"t{number}").allowed
        assert book.decide("User:ann", HOME, READ, TOPIC, "kept").allowed
        assert len(book._decisions) <= 4_096
    assert not book.decide("User:ann", HOME, READ, GROUP, "kept").allowed
    assert not book.decide("User:bob", HOME, READ, TOPIC, "kept").allowed
    assert not book.decide("User:ann", "192.0.2.1", READ, TOPIC, "kept").allowed
    assert not book.decide("User:ann", HOME, WRITE, TOPIC, "kept").allowed


def test_what_a_decision_looks_at_does_not_grow_with_rules_of_other_resources_principals_and_hosts():
    class Counting(dict):
        looks = 0

        def get(self, key, default=None):
            Counting.looks += 1
            return super().get(key, default)

    def looks(acls):
        book = AclBook(acls, CLOSED)
        of_type = book._types[TOPIC]
        of_type.literal, of_type.prefixed = Counting(of_type.literal), Counting(of_type.prefixed)
        Counting.looks = 0
        assert book.decide("User:ann", HOME, READ, TOPIC, "orders").allowed
        return Counting.looks

    others = [acl(f"other-{number:04}", prefixed=number % 2 == 0) for number in range(1000)]
    users = [acl(principal=f"User:{number}", host=f"10.1.{number // 256}.{number % 256}") for number in range(1000)]
    few = looks([acl(), acl("x", prefixed=True), others[0]])
    assert looks([acl(), acl("x", prefixed=True), *others, *users]) == few
