"""shapes.json is the SDK's models, and what it is used for."""

from __future__ import annotations

import json

import pytest
from tencentcloud.ckafka.v20190819 import errorcodes

from controlplane.ckafka_api import shapes
from controlplane.ckafka_api.actions.table import TABLE
from controlplane.ckafka_api.errors import CkafkaError, Code

from . import sdk


def test_the_file_is_as_the_sdk_has_it():
    """Renew it with `python -m tests.controlplane.ckafka_api.sdk`."""
    assert json.loads(sdk.SHAPES.read_text()) == sdk.document(sorted(TABLE))


def test_every_action_that_is_had_is_one_of_the_sdks():
    assert set(TABLE) <= shapes.ACTIONS
    assert len(shapes.ACTIONS) == 105


def test_required_parameters_are_known_to_the_sdk():
    for name, action in TABLE.items():
        known = shapes.SHAPES[f"{name}Request"]
        assert set(action.required) <= set(known), name
        assert not action.of_instance or "InstanceId" in known, name


def test_every_code_is_in_the_sdks_list():
    known = {value for name, value in vars(errorcodes).items() if name.isupper()}
    assert {code.value for code in Code} <= known


@pytest.mark.parametrize(
    ("members", "code", "named"),
    [
        ({"InstanceId": 5}, Code.INVALID_PARAMETER, "InstanceId"),
        ({"PartitionNum": "3"}, Code.INVALID_PARAMETER, "PartitionNum"),
        ({"PartitionNum": True}, Code.INVALID_PARAMETER, "PartitionNum"),
        ({"PartitionNum": 3.0}, Code.INVALID_PARAMETER, "PartitionNum"),
        ({"IpWhiteList": "127.0.0.1"}, Code.INVALID_PARAMETER, "IpWhiteList"),
        ({"IpWhiteList": ["127.0.0.1", 7]}, Code.INVALID_PARAMETER, "IpWhiteList.1"),
        ({"Tags": ["a"]}, Code.INVALID_PARAMETER, "Tags.0"),
        ({"Tags": [{"TagKey": 1}]}, Code.INVALID_PARAMETER, "Tags.0.TagKey"),
        ({"Tags": [{"Key": "a"}]}, Code.UNKNOWN_PARAMETER, "Tags.0.Key"),
        ({"PartitionNumber": 3}, Code.UNKNOWN_PARAMETER, "PartitionNumber"),
    ],
)
def test_a_request_is_checked_member_by_member(members, code, named):
    with pytest.raises(CkafkaError) as caught:
        shapes.check("CreateTopicRequest", members)
    assert caught.value.code is code
    assert f"`{named}`" in caught.value.message


def test_nulls_are_as_if_they_were_left_out():
    shapes.check("CreateTopicRequest", {"InstanceId": None, "Tags": [{"TagKey": None}]})


def test_an_answer_has_every_member():
    found = shapes.filled("JgwOperateResponse", {"ReturnCode": "0"})
    assert found == {"ReturnCode": "0", "ReturnMessage": "", "Data": None}
    found = shapes.filled("JgwOperateResponse", {"Data": {"FlowId": 3}})
    assert found["Data"] == {"FlowId": 3, "RouteDTO": {"RouteId": 0}}


def test_a_member_that_the_sdk_does_not_know_is_a_bug():
    with pytest.raises(KeyError, match="Flow"):
        shapes.filled("InstanceDeleteResponse", {"Flow": 3})
