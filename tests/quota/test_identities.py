"""Identities: each has a credential of its own, made of the cluster's secret, and proves nothing else with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.contracts.identity import (
    ANYBODY,
    CONTROL_PLANE,
    METERING,
    MONITORING,
    OPERATOR,
    Identity,
    Keys,
    Role,
    broker,
    credential,
    identity_of,
    master,
)
from quota.contracts.instance import ContractError

EVERY = (CONTROL_PLANE, METERING, OPERATOR, MONITORING, broker(0), broker(1), broker(12), master(1), master(2))


@pytest.mark.parametrize("identity", EVERY, ids=lambda each: each.name)
def test_a_name_says_whose_it_is(identity):
    assert identity_of(identity.name) == identity


@pytest.mark.parametrize(
    "name",
    ["", "broker", "broker-", "broker--1", "broker-01", "broker-+1", "broker-1 ", "Broker-1", "broker-\u0661", "cluster",
     "anybody", "operator-1", "metering-1", "broker-2147483648", "broker-99999999999999999999", "master-1.0"],
)  # fmt: skip
def test_no_other_name_is_anybodys(name):
    assert identity_of(name) is None
    assert Keys("s").proven(name, credential("s", name)) is None


@given(st.text(max_size=20))
def test_a_name_is_read_in_one_way(name):
    found = identity_of(name)
    assert found is None or found.name == name


@pytest.mark.parametrize("said", EVERY, ids=lambda each: each.name)
def test_what_one_has_proves_that_one_and_no_other(said):
    keys = Keys("the secret")
    for claimed in EVERY:
        found = keys.proven(claimed.name, credential("the secret", said.name))
        assert found == (claimed if claimed == said else None)


def test_the_credential_is_as_documented():
    assert credential("the secret", "metering") == "75822a6a67b0c5b3b08b526dba34c3a763e205f235da088c94ebed45509d5aa8"


def test_a_secret_that_is_being_replaced_is_known_and_not_said():
    keys = Keys("new", accepted=("old",))
    assert keys.proven("metering", credential("old", "metering")) == METERING
    assert keys.proven("metering", credential("new", "metering")) == METERING
    assert keys.own(METERING) == credential("new", "metering")


@pytest.mark.parametrize("name", ["metering", "broker-1", "cluster", ""])
def test_the_shared_secret_is_nobodys_unless_a_setting_says_so(name):
    assert Keys("s").proven(name, "s") is None
    assert Keys("s", accepted=("t",), shared="accepted").proven(name, "t") == ANYBODY
    assert Keys("s", shared="said").proven(name, "s") == ANYBODY


def test_who_says_the_shared_secret_is_known_by_those_who_know_nothing_else():
    assert Keys("s", shared="said").own(broker(1)) == "s"
    assert Keys("s", shared="accepted").own(broker(1)) == credential("s", "broker-1")


def test_over_http_it_is_said_with_the_name():
    keys = Keys("s")
    header = keys.bearer(CONTROL_PLANE)
    assert header == "Bearer controlplane." + credential("s", "controlplane")
    assert keys.bearer_proven(header) == keys.bearer_proven("bearer" + header[6:]) == CONTROL_PLANE
    for wrong in ("", "Bearer", "Bearer ", "Bearer controlplane", header[7:], "Basic " + header[7:], header + "0",
                  header.replace("controlplane", "operator")):  # fmt: skip
        assert keys.bearer_proven(wrong) is None
    assert Keys().bearer(CONTROL_PLANE) is None


def test_where_there_is_no_secret_nobody_is_known():
    for said in ("", credential("", "metering")):
        assert Keys().proven("metering", said) is None
        assert Keys(shared="said").proven("metering", said) is None
    assert Keys().own(METERING) is None


def test_who_has_only_its_own_has_nothing_else():
    keys = Keys.from_document({"credentials": {"metering": "c"}})
    assert (keys.own(METERING), keys.own(CONTROL_PLANE)) == ("c", None)


def test_what_is_said_may_be_no_text():
    assert Keys("s").proven("metering", b"\xff".decode(errors="surrogateescape")) is None
    assert Keys("s").proven(b"\xff".decode(errors="surrogateescape"), "s") is None


@pytest.mark.parametrize(
    "document",
    [[], "x", {"cluster_secret": 1}, {"accepted_cluster_secrets": "x"}, {"accepted_cluster_secrets": [""]},
     {"credentials": []}, {"credentials": {"metering": 1}}],
)  # fmt: skip
def test_a_file_of_another_shape_is_refused_without_its_content(document):
    with pytest.raises(ContractError, match="secrets: "):
        Keys.from_document(document)


def test_a_shared_secret_is_good_for_one_of_three_things():
    with pytest.raises(ContractError, match="shared_secret must be one of refused, accepted, said, not 'yes'"):
        Keys.from_document({}, "yes")


def test_nothing_of_it_is_shown():
    assert "hidden" not in repr(Keys("hidden", ("hidden",), {"metering": "hidden"}))


def test_everybody_has_no_number():
    assert Identity(Role.ANYBODY).name == "anybody"


@given(st.text(st.characters(codec=None), max_size=8), st.text(st.characters(codec=None), max_size=8))
def test_whatever_is_said_is_answered(name, said):
    assert Keys("s", shared="accepted").proven(name, said) in (None, ANYBODY)
