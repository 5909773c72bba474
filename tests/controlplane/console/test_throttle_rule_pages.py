"""Throttle rules are made, changed and deleted on pages, with the rules that REST has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.console.rules import EACH, as_lines, from_lines
from controlplane.core.models import AuditEntry
from controlplane.instances.models import Instance, InstanceState
from controlplane.throttle_rules.selectors import throttle_rule_list
from controlplane.throttle_rules.services import throttle_rule_create
from quota.contracts.instance import MIB
from quota.contracts.rules import MOST_RULES, RuleKind

from .conftest import problem_beside, text_of


@pytest.fixture
def base(instance):
    return f"instances/{instance.id}"


@pytest.fixture
def rules(alice, instance):
    return lambda: throttle_rule_list(organisation=alice.organisation, instance_id=instance.id)


@pytest.fixture
def made(alice, instance):
    def make(**members):
        return throttle_rule_create(
            organisation=alice.organisation, actor="alice@example.com", instance_id=instance.id, **members
        )

    return make


@pytest.mark.parametrize(
    ("kind", "typed", "names"),
    [
        ("topic", {"topics": " orders \n\npayments\n"}, {"topics": ("orders", "payments")}),
        ("client", {"users": "ann", "clients": "a client\nb"}, {"users": ("ann",), "clients": ("a client", "b")}),
        ("client", {"users": "*"}, {"users": (None,)}),
        ("group", {"groups": "readers"}, {"groups": ("readers",)}),
    ],
)
def test_a_rule_of_each_kind_is_made(at_alice, base, rules, kind, typed, names):
    assert "New rule" in text_of(at_alice.get(f"{base}/quota"))
    answer = at_alice.post(f"{base}/new-throttle-rule?kind={kind}", {**typed, "consume_mib_per_s": "2.5"}, follow=True)
    assert "the limit is in force within 2 seconds." in text_of(answer)
    assert "2.5 MiB/s" in text_of(answer)
    (rule,) = rules()
    assert (rule.kind, rule.produce_bytes_per_s, rule.consume_bytes_per_s) == (RuleKind(kind), None, int(2.5 * MIB))
    assert {name: getattr(rule, name) for name in names} == names
    (entry,) = AuditEntry.objects.for_organisation(at_alice.organisation).filter(action="throttle_rule.create")
    assert entry.actor == "alice@example.com"


def test_a_rule_is_changed_in_place(at_alice, base, rules, made):
    rule = made(kind="client", users=["ann"], clients=[None], produce_mib_per_s=0.2)
    page = at_alice.get(f"{base}/throttle-rules/{rule.id}").content.decode()
    assert 'value="0.2"' in page
    assert ">\nann</textarea>" in page
    assert f">\n{EACH}</textarea>" in page
    answer = at_alice.post(
        f"{base}/throttle-rules/{rule.id}",
        {"users": "bea\nann", "clients": "", "produce_mib_per_s": "", "consume_mib_per_s": "3"},
        follow=True,
    )
    assert "Clients: user bea, ann" in text_of(answer)
    (changed,) = rules()
    assert (changed.id, changed.users, changed.clients) == (rule.id, ("bea", "ann"), ())
    assert (changed.produce_bytes_per_s, changed.consume_bytes_per_s) == (None, 3 * MIB)


def test_what_is_saved_as_it_stood_stays_as_it_was(at_alice, base, rules, made):
    rule = made(kind="topic", topics=["orders"], produce_mib_per_s=0.3, consume_mib_per_s=1.1)
    at_alice.post(
        f"{base}/throttle-rules/{rule.id}",
        {"topics": "orders", "produce_mib_per_s": "0.3", "consume_mib_per_s": "1.1"},
    )
    assert rules() == [rule]


def test_a_rule_is_deleted(at_alice, base, rules, made):
    rule, kept = (made(kind="topic", topics=[topic], produce_mib_per_s=1) for topic in ("orders", "payments"))
    answer = at_alice.post(f"{base}/throttle-rules/{rule.id}/delete", follow=True)
    assert "The throttle rule was deleted" in text_of(answer)
    assert rules() == [kept]
    assert at_alice.post(f"{base}/throttle-rules/{rule.id}/delete").status_code == 404
    assert at_alice.get(f"{base}/throttle-rules/{rule.id}").status_code == 404


@pytest.mark.parametrize(
    ("kind", "typed", "field", "said"),
    [
        ("topic", {"topics": "", "produce_mib_per_s": 1}, "topics", "This field is required."),
        ("topic", {"topics": "orders"}, "produce_mib_per_s", "Give a limit."),
        ("group", {"groups": "readers"}, "consume_mib_per_s", "Give a limit."),
        ("client", {"produce_mib_per_s": 1}, "users", "Name users, client ids, or both."),
        ("topic", {"topics": "orders", "produce_mib_per_s": "x"}, "produce_mib_per_s", "Enter a number."),
        ("topic", {"topics": "orders", "produce_mib_per_s": "nan"}, "produce_mib_per_s", "Enter a number."),
        (
            "topic",
            {"topics": "orders", "produce_mib_per_s": -1},
            "produce_mib_per_s",
            "Must be more than 0 and at most 100 000. Leave it empty for no limit.",
        ),
        *(
            (
                "topic",
                {"topics": "orders", "consume_mib_per_s": limit},
                "consume_mib_per_s",
                "Must be more than 0 and at most 100 000. Leave it empty for no limit.",
            )
            for limit in ("0", "100000.1")
        ),
    ],
)
def test_what_is_wrong_stands_beside_its_field(at_alice, base, rules, kind, typed, field, said):
    page = at_alice.post(f"{base}/new-throttle-rule?kind={kind}", typed)
    assert page.status_code == 422
    assert problem_beside(page, field) == said
    assert rules() == []


def test_a_bad_topic_is_named(at_alice, base, rules):
    why = "the topic name may hold only letters, digits,"
    page = at_alice.post(f"{base}/new-throttle-rule", {"topics": "orders\n\nno/good", "produce_mib_per_s": 1})
    assert problem_beside(page, "topics").startswith(f"no/good: {why}")
    page = at_alice.post(f"{base}/new-throttle-rule", {"topics": "*", "produce_mib_per_s": 1})
    assert problem_beside(page, "topics").startswith(f"*: {why}")
    assert rules() == []


def test_what_two_rules_cannot_both_name_is_said(at_alice, base, made):
    made(kind="topic", topics=["orders"], produce_mib_per_s=1)
    page = at_alice.post(f"{base}/new-throttle-rule", {"topics": "orders", "produce_mib_per_s": 2})
    assert page.status_code == 422
    assert "Topic orders has a throttle rule already." in text_of(page)


def test_more_rules_than_there_may_be_are_refused_with_a_sentence(at_alice, base, made):
    for number in range(MOST_RULES):
        made(kind="topic", topics=[f"topic-{number}"], produce_mib_per_s=1)
    page = at_alice.post(f"{base}/new-throttle-rule", {"topics": "orders", "produce_mib_per_s": 2})
    assert f"An instance may have {MOST_RULES} throttle rules." in text_of(page)


@pytest.mark.parametrize("name", ["two\nlines", "two\rlines", " a", "a\0b"])
def test_names_that_no_line_can_hold_are_left_to_rest(at_alice, base, rules, made, name):
    """A browser shows NUL as another letter, and would send that back."""
    rule = made(kind="group", groups=[name, "other"], consume_mib_per_s=1)
    page = at_alice.get(f"{base}/throttle-rules/{rule.id}")
    assert "what cannot be typed on a page" in text_of(page)
    assert at_alice.post(f"{base}/throttle-rules/{rule.id}", {"groups": "x"}).status_code == 200
    assert rules() == [rule]


@pytest.mark.parametrize("name", ["*", "a\u2028b", "a\x85b", "a\x1cb"])
def test_a_name_is_one_name_where_a_browser_shows_one_line(at_alice, base, rules, name):
    typed = {"groups": name, "consume_mib_per_s": "1"}
    assert at_alice.post(f"{base}/new-throttle-rule?kind=group", typed).status_code == 302
    (rule,) = rules()
    assert rule.groups == (name,)
    answer = at_alice.post(f"{base}/throttle-rules/{rule.id}", typed | {"consume_mib_per_s": "2"})
    assert answer.status_code == 302
    assert [(each.groups, each.consume_bytes_per_s) for each in rules()] == [((name,), 2 * MIB)]


def test_why_a_rule_cannot_be_changed_now_is_said(at_alice, base, instance, made):
    rule = made(kind="topic", topics=["orders"], produce_mib_per_s=1)
    Instance.objects.unscoped("a test").filter(pk=instance.id).update(state=InstanceState.DELETING)
    said = "Throttle rules can be changed as soon as the instance is running. It is deleting now."
    assert said in text_of(at_alice.get(f"{base}/throttle-rules/{rule.id}"))
    answer = at_alice.post(f"{base}/throttle-rules/{rule.id}", {"topics": "orders", "produce_mib_per_s": 2})
    assert answer.status_code == 422
    assert said in text_of(answer)


@given(st.lists(st.none() | st.text(min_size=1, max_size=12)), st.booleans())
def test_what_stands_in_the_form_is_read_as_what_it_was(names, takes_each):
    lines = as_lines(names, takes_each=takes_each)
    if lines is not None:
        assert from_lines(lines, takes_each=takes_each) == names
        assert from_lines(lines.replace("\n", "\r\n"), takes_each=takes_each) == names, "as browsers send it"


@given(st.lists(st.from_regex(r"[a-z][a-z .-]{0,8}[a-z]", fullmatch=True)))
def test_ordinary_names_can_be_typed(names):
    assert as_lines(names, takes_each=True) is not None


def test_a_viewer_looks_and_changes_nothing(at_viewer, base, rules, made):
    rule = made(kind="topic", topics=["orders"], produce_mib_per_s=1)
    assert "New rule" not in text_of(at_viewer.get(f"{base}/quota"))
    page = text_of(at_viewer.get(f"{base}/throttle-rules/{rule.id}"))
    assert "Topics orders" in page
    assert "Delete" not in page
    for path in (f"throttle-rules/{rule.id}", f"throttle-rules/{rule.id}/delete", "new-throttle-rule"):
        assert at_viewer.post(f"{base}/{path}", {"topics": "mine", "produce_mib_per_s": 9}).status_code == 403
    assert rules() == [rule]


# --- the page of all of them ------------------------------------------------------------------------------------------------


@pytest.fixture
def three(made):
    """A rule of each kind."""
    return {
        "topic": made(kind="topic", topics=["orders"], produce_mib_per_s=1, consume_mib_per_s=3),
        "client": made(kind="client", users=["ann"], clients=["shop"], produce_mib_per_s=2),
        "group": made(kind="group", groups=["readers"], consume_mib_per_s=1),
    }


def ids_in(page, rules):
    """Kinds of the rules that a page lists, in its order."""
    text = page.content.decode()
    found = [(text.find(f">{rule.id}<"), kind) for kind, rule in rules.items()]
    return [kind for place, kind in sorted(found) if place >= 0]


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("kind=topic", ["topic"]),
        ("topic=orders", ["topic"]),
        ("user=ann", ["client"]),
        ("client=shop", ["client"]),
        ("group=readers", ["group"]),
        ("kind=topic&user=ann", []),
        ("topic=order", []),  # whole names, as by REST
        ("sort=produce_mib_per_s", ["topic", "client", "group"]),
        ("sort=-produce_mib_per_s", ["client", "topic", "group"]),
        ("sort=-consume_mib_per_s", ["topic", "group", "client"]),
        ("sort=kind", ["client", "group", "topic"]),
    ],
)
def test_rules_are_filtered_and_sorted_on_a_page_of_their_own(at_alice, base, three, query, kinds):
    page = at_alice.get(f"{base}/throttle-rules?{query}")
    assert page.status_code == 200
    assert ids_in(page, three) == kinds
    assert ("No rule fits" in text_of(page)) is not kinds


def test_a_kind_that_there_is_not_is_said_beside_its_field(at_alice, base, three):
    page = at_alice.get(f"{base}/throttle-rules?kind=color")
    assert page.status_code == 422
    assert problem_beside(page, "kind")


def test_many_rules_come_in_pages_and_the_quota_shows_the_first_ten(at_alice, base, made):
    for number in range(27):
        made(kind="topic", topics=[f"t-{number:02}"], produce_mib_per_s=1)
    first, second = at_alice.get(f"{base}/throttle-rules"), at_alice.get(f"{base}/throttle-rules?page=2")
    assert [text_of(page).count("Topics t-") for page in (first, second)] == [25, 2]
    quota = at_alice.get(f"{base}/quota")
    assert text_of(quota).count("Topics t-") == 10
    assert "All 27 rules" in text_of(quota)
    assert f'{base}/throttle-rules"' in quota.content.decode()


def test_where_there_is_none_the_page_leads_to_a_new_one_whoever_may_change(at_alice, at_viewer, base):
    page = at_alice.get(f"{base}/throttle-rules")
    assert "No throttle rule" in text_of(page)
    assert f'{base}/new-throttle-rule"' in page.content.decode()
    assert "new-throttle-rule" not in at_viewer.get(f"{base}/throttle-rules").content.decode()


def test_without_zookeeper_the_page_says_that_rules_are_not_known(at_alice, base, tree):
    tree.away = True
    page = at_alice.get(f"{base}/throttle-rules")
    assert page.status_code == 503
    assert "does not answer" in text_of(page)


def test_its_command_lists_rules(at_alice, base, instance):
    assert f"The same by CLI: sluice rule list {instance.id} Copy" in text_of(at_alice.get(f"{base}/throttle-rules"))
