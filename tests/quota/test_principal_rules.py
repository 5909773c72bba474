"""From the subject of a certificate to a principal's name, with the examples of Kafka's documentation and of its own tests."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.core.principal_rules import (
    LONGEST_RULE,
    LONGEST_SUBJECT,
    NoRuleError,
    PrincipalMapping,
    RuleError,
    rules_problem,
)

OF_THE_DOCUMENTATION = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/",
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L",
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L",
    "DEFAULT",
)
OF_ITS_TESTS = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L",
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L",
    "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U",
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U",
    "DEFAULT",
)


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        (
            OF_THE_DOCUMENTATION,
            "CN=serviceuser,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=Unknown",
            "serviceuser",
        ),
        (OF_THE_DOCUMENTATION, "CN=adminUser,OU=Admin,O=Unknown,L=Unknown,ST=Unknown,C=Unknown", "adminuser@admin"),
        (OF_ITS_TESTS, "CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        (OF_ITS_TESTS, "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        (OF_ITS_TESTS, "cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        (OF_ITS_TESTS, "cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        (OF_ITS_TESTS, "OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
        (("RULE:^CN=((\\\\, *|\\w)+)(,.*|$)/$1/", "DEFAULT"), "CN=Tkac\\, Adam,OU=ITZ,DC=geodis,DC=cz", "Tkac\\, Adam"),
        ((r"RULE:^CN=([^,]+)\/x,.*$/$1\/y/",), "CN=a/x,OU=b", "a/y"),
        ((), "CN=whole,OU=subject", "CN=whole,OU=subject"),
        (("RULE:^CN=(.*?)$/$1 $2 $3/",), "CN=a", "a $2 $3"),
        (("RULE:^CN=(.*?)$/$10/",), "CN=a", "a0"),
        (("RULE:CN=(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)/$10$11/",), "CN=abcdefghij", "ja1"),
        (("RULE:^CN=(.*?)$/\\$1/",), "CN=a", "$1"),
        (("RULE:.*/x/",), "CN=a", "xx"),  # as Java's replaceAll
        (("RULE:CN=(.*?)/<$1>/",), "CN=a", "<>a"),  # it matches as a whole, and is found shorter
        (("RULE:(CN=)?(.*)/[$1]/",), "O=x", "[][]"),
        (("RULE:^CN=\u00e9(.*)$/$1\u00df/U",), "CN=\u00e9mile", "MILESS"),
    ],
)
def test_examples(rules, subject, name):
    assert PrincipalMapping(rules).name(subject) == name


@pytest.mark.parametrize(
    "rule",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "DEFAULT/U",
        "RULE:CN=(.*?),OU=ServiceUsers.*/$1",
        "rule:^CN=(.*?),OU=ServiceUsers.*$/$1/",
        "rule:^CN=(.*?),OU=ServiceUsers.*$/$1/L/U",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/L",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/U",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/LU",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/LU",
        "RULE:^CN=(/$1/",
        "RULE:^CN=(?=a).*/x/",
        "RULE:^(.)\\1/x/",
        "RULE:^CN=.*/$1/",
        "RULE:^CN=(.*)/a$/",
        "RULE:^CN=(.*)/${name}/",
        "RULE:" + "a" * LONGEST_RULE + "/x/",
        "RULE:(a{1000}){1000}/x/",
        "",
    ],
)
def test_what_is_not_a_rule_is_refused_with_a_sentence(rule):
    with pytest.raises(RuleError) as refused:
        PrincipalMapping([rule])
    assert repr(rule) in str(refused.value) or f"not {len(rule)}" in str(refused.value)
    assert rules_problem([rule])


def test_more_rules_than_anybody_needs_are_refused():
    assert rules_problem(["DEFAULT"] * 21)
    assert rules_problem(["DEFAULT"] * 20) is None


@pytest.mark.parametrize("rules", [("RULE:^CN=(.*)$/$1/",), ("RULE:^O=.*$/x/", "RULE:^OU=.*$/y/")])
def test_a_subject_that_no_rule_matches_is_nobody(rules):
    with pytest.raises(NoRuleError):
        PrincipalMapping(rules).name("DC=somebody")


def test_a_subject_that_is_too_long_is_nobody():
    with pytest.raises(NoRuleError):
        PrincipalMapping(()).name("CN=" + "x" * LONGEST_SUBJECT)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("pattern", "subject"),
    [
        ("(a+)+b", "a" * 4000),
        ("(a|a)*b", "a" * 4000),
        ("(.*?),(.*?),(.*?),(.*?),(.*?),(.*?),(.*?);", "a," * 2000),
        ("(x*)*(y*)*z", "xy" * 2000),
    ],
)
def test_patterns_that_would_take_others_forever_do_not(pattern, subject):
    with pytest.raises(NoRuleError):
        PrincipalMapping([f"RULE:{pattern}/x/"]).name(subject)


@given(st.text(max_size=40), st.text(max_size=60))
def test_whatever_is_written_is_a_rule_or_refused_and_names_or_does_not(text, subject):
    for rule in (text, f"RULE:{text}/$1/"):
        try:
            mapping = PrincipalMapping([rule])
        except RuleError:
            continue
        with contextlib.suppress(NoRuleError):
            assert isinstance(mapping.name(subject), str)


@given(st.lists(st.sampled_from("ab,= "), max_size=12).map("".join))
def test_replacing_is_as_pythons_own_where_both_have_it(subject):
    import re

    for pattern in ("a*", "(a|b)*", ".*", "(a*)(b*).*", "a?.*"):
        ours = (
            PrincipalMapping([f"RULE:{pattern}/<$0>/", "DEFAULT"])
            if False
            else PrincipalMapping([f"RULE:({pattern})/<$1>/", "DEFAULT"])
        )
        expected = re.sub(f"({pattern})", r"<\1>", subject) if re.fullmatch(pattern, subject) else subject
        assert ours.name(subject) == expected


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "pattern",
    [
        ".*?",  # found as nothing before each character
        "(?:(.*)(a?){100}c)?(.*?)",  # and each time all that is behind was looked at
    ],
)
def test_a_rule_that_replaces_without_end_makes_nobody(pattern):
    with pytest.raises(NoRuleError, match="more than 4 parts"):
        PrincipalMapping([f"RULE:{pattern}/x/"]).name("a" * LONGEST_SUBJECT)


def test_a_name_cannot_grow_beyond_the_longest_subject():
    doubled = PrincipalMapping(["RULE:^(.*)$/$1$1/"])
    assert len(doubled.name("a" * (LONGEST_SUBJECT // 2))) == LONGEST_SUBJECT
    with pytest.raises(NoRuleError, match="more than 1024 characters"):
        doubled.name("a" * (LONGEST_SUBJECT // 2 + 1))


@pytest.mark.parametrize("pattern", ["(a?){0,1000}b*", "(.{0,30}){0,30}", "(.*a.{999}).*"])
def test_a_pattern_that_is_too_large_is_refused(pattern):
    assert "too large" in rules_problem([f"RULE:{pattern}/x/"])


def test_a_rule_may_name_all_parts_of_a_subject():
    parts = ["CN", "OU", "OU", "O", "STREET", "L", "ST", "C", "DC", "DC", "UID"]
    pattern = "^" + ",".join(f"{part}=([^,]*)" for part in parts) + "$"
    subject = ",".join(f"{part}={part.lower()}" for part in parts)
    assert PrincipalMapping([f"RULE:{pattern}/$1@$4/"]).name(subject) == "cn@o"
