"""Signatures are judged as the vendor's SDK makes them: every vector here is its own."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tencentcloud.common.http.request import RequestInternal

from controlplane.ckafka_api import tc3

from .conftest import sdk_of

pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcfromtimestamp")
SECRET_ID, SECRET = "slak" + "a" * 24, "s3cret_-of the SDK é"
texts = st.text(st.characters(exclude_categories=["Cs"]))
bodies = st.dictionaries(texts, st.recursive(texts | st.integers() | st.booleans(), st.lists, max_leaves=5))


def vector(parameters, endpoint="127.0.0.1:8000", secret=SECRET):
    """A request as the SDK signs it, and as a server receives it."""
    request = RequestInternal(endpoint, "POST", "/", header={})
    client = sdk_of((SECRET_ID, secret), endpoint=endpoint)
    client._build_req_with_tc3_signature("DescribeInstances", parameters, request)
    signature = tc3.signature_of(request.header["Authorization"])
    received = tc3.Received(
        method="POST",
        path="/compat/ckafka",
        query="",
        headers={name.lower(): value for name, value in request.header.items()},
        body=request.data.encode(),
        timestamp=request.header["X-TC-Timestamp"],
    )
    return signature, received


@given(bodies)
def test_what_the_sdk_signs_is_right(parameters):
    signature, received = vector(parameters)
    assert signature.secret_id == SECRET_ID
    assert tc3.problem_of(signature, received, float(received.timestamp)) is None
    assert tc3.is_right(signature, received, SECRET)


def test_a_request_to_a_host_in_capitals_is_right_as_well():
    assert tc3.is_right(*vector({}, endpoint="Sluice.Example:8443"), SECRET)


@pytest.mark.parametrize(
    "changed",
    [
        {"body": b'{"Limit": 2}'},
        {"timestamp": "1700000000"},
        {"method": "PUT"},
        {"query": "Action=DeleteTopic"},
        {"headers": {"content-type": "application/json", "host": "elsewhere:8000"}},
        {"headers": {"content-type": "text/plain", "host": "127.0.0.1:8000"}},
    ],
)
def test_what_was_changed_on_the_way_is_not(changed):
    signature, received = vector({"Limit": 1})
    assert tc3.is_right(signature, received, SECRET)
    assert not tc3.is_right(signature, dataclasses.replace(received, **changed), SECRET)


def test_another_secret_is_not():
    assert not tc3.is_right(*vector({}, secret=SECRET + "x"), SECRET)


@pytest.mark.parametrize("late_s", [-301, 301, 86_400])
def test_a_signature_is_good_for_five_minutes(late_s):
    signature, received = vector({})
    now_s = float(received.timestamp)
    assert tc3.problem_of(signature, received, now_s + 299) is None
    assert "expired" in tc3.problem_of(signature, received, now_s + late_s)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"date": "2020-01-01"}, "date"),
        ({"service": "cvm"}, "service"),
        ({"headers": ("content-type",)}, "host"),
        ({"headers": ("host",)}, "content-type"),
    ],
)
def test_a_credential_says_when_for_what_and_what_is_signed(changed, sentence):
    signature, received = vector({})
    assert sentence in tc3.problem_of(dataclasses.replace(signature, **changed), received, float(received.timestamp))


@pytest.mark.parametrize("timestamp", ["", "soon", "-5", "1e9", "9" * 13, "١٢٣"])
def test_a_timestamp_is_a_number_of_seconds(timestamp):
    signature, received = vector({})
    assert "X-TC-Timestamp" in tc3.problem_of(signature, dataclasses.replace(received, timestamp=timestamp), 0.0)


@pytest.mark.parametrize(
    "text", ["", "Bearer slc_x", "TC3-HMAC-SHA256 Credential=a/b/c", "HmacSHA1", "TC3-HMAC-SHA256 " + "x" * 1000]
)
def test_other_headers_are_no_signature(text):
    assert tc3.signature_of(text) is None


def test_the_sdk_does_not_sign_the_action():
    """What makes replay.py necessary: a test fails when a release of the SDK signs it."""
    signature, _ = vector({})
    assert signature.headers == ("content-type", "host")


def test_the_path_may_be_signed_instead():
    signature, received = vector({})
    for uri, is_right in (("/compat/ckafka", True), ("/elsewhere", False)):
        digest = tc3.digest_of(signature, received, SECRET, uri=uri, is_lowered=False)
        assert tc3.is_right(dataclasses.replace(signature, digest=digest), received, SECRET) is is_right
