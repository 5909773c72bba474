"""ConsumerGroupHeartbeat, ConsumerGroupDescribe and their neighbours through the codecs: as a tenant's client sees them."""

import pytest

from dataplane.handlers.groups.consumer import (
    MAX_OWNED,
    MAX_TOPICS,
    handle_consumer_group_describe,
    handle_consumer_group_heartbeat,
)
from dataplane.handlers.groups.membership import handle_describe_groups, handle_list_groups
from dataplane.handlers.groups.offsets import handle_offset_fetch
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatTopicPartitions,
)
from dataplane.protocol.messages.groups import DescribeGroupsRequest, ListGroupsRequest
from dataplane.protocol.messages.offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from quota.contracts.namespace import InstanceNames
from tests.dataplane.groups.test_handlers import GROUP, KEY, TOPIC
from tests.dataplane.groups.test_handlers import Tenant as OfBoth


class Tenant(OfBoth):
    """Of an instance with one topic of two partitions."""

    def __init__(self):
        super().__init__()
        self.world.topics.put(TOPIC, 2)
        self.topic_id = self.world.topics.rows[TOPIC].topic_id

    def beats(self, epoch=0, member="ana", version=1, **more):
        if epoch == 0:
            more = {
                "rebalance_timeout_ms": 60_000,
                "subscribed_topic_names": (TOPIC,),
                "topic_partitions": (),
                **more,
            }
        asked = ConsumerGroupHeartbeatRequest(more.pop("group", GROUP), member, epoch, **more)
        return self.call(handle_consumer_group_heartbeat, asked, version)

    def describes(self, *groups, version=1, **more):
        return self.call(handle_consumer_group_describe, ConsumerGroupDescribeRequest(groups, **more), version).groups


def test_a_member_joins_heartbeats_and_leaves():
    tenant = Tenant()
    joined = tenant.beats()
    assert (joined.error_code, joined.member_id, joined.member_epoch, joined.heartbeat_interval_ms) == (
        0,
        "ana",
        1,
        5_000,
    )
    assert joined.assignment.topic_partitions == (ConsumerGroupHeartbeatTopicPartitions(tenant.topic_id, (0, 1)),)
    beat = tenant.beats(1)
    assert (beat.error_code, beat.member_epoch, beat.assignment) == (0, 1, None)
    left = tenant.beats(-1)
    assert (left.error_code, left.member_epoch, left.heartbeat_interval_ms) == (0, -1, 0)


def test_before_version_1_the_coordinator_makes_up_an_id():
    joined = Tenant().beats(member="", version=0)
    assert joined.error_code == ErrorCode.NONE
    assert len(joined.member_id) == 36


WRONG = [
    {"group": f"{KEY}."},
    {"member": ""},
    {"instance_id": ""},
    {"rack_id": ""},
    {"instance_id": "i" * 250},
    {"epoch": -3},
    {"epoch": -2},
    {"rebalance_timeout_ms": -1},
    {"topic_partitions": None},
    {"topic_partitions": (ConsumerGroupHeartbeatTopicPartitions(partitions=(0,)),)},
    {"subscribed_topic_names": None},
    {"subscribed_topic_names": (TOPIC,) * (MAX_TOPICS + 1)},
    {"epoch": 1, "topic_partitions": (ConsumerGroupHeartbeatTopicPartitions(partitions=(0,) * (MAX_OWNED + 1)),)},
]


@pytest.mark.parametrize("changes", WRONG, ids=", ".join)
def test_a_request_that_says_too_little_or_too_much_is_refused(changes):
    answer = Tenant().beats(**changes)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message


def test_an_assignor_that_there_is_not_is_refused_with_those_that_there_are():
    answer = Tenant().beats(server_assignor="sticky")
    assert answer.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "uniform, range" in answer.error_message


def test_a_topic_that_the_member_may_not_see_refuses_all_of_it():
    tenant = Tenant()
    tenant.denied.add(TOPIC)
    assert tenant.beats().error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert tenant.world.coordinator.find(GROUP) is None


def test_a_regular_expression_is_that_of_the_tenants_names():
    tenant = Tenant()
    tenant.world.topics.put("bbbbbbbb.t", 1)
    joined = tenant.beats(subscribed_topic_names=None, subscribed_topic_regex="t")
    assert [row.topic_id for row in joined.assignment.topic_partitions] == [tenant.topic_id]
    refused = tenant.beats(subscribed_topic_regex="(")
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_two_tenants_groups_of_one_name_are_two_groups():
    tenant = Tenant()
    tenant.beats()
    tenant.world.topics.put("bbbbbbbb.t", 1)
    other = Tenant()
    other.world, other.broker = tenant.world, tenant.broker
    other.session.names = InstanceNames("bbbbbbbb")
    joined = other.beats(group="bbbbbbbb.g", subscribed_topic_names=("bbbbbbbb.t",))
    assert joined.member_epoch == 1
    assert [group.group_id for group in other.call(handle_list_groups, ListGroupsRequest(), 5).groups] == ["g"]
    assert [member.member_id for member in other.describes("bbbbbbbb.g")[0].members] == ["ana"]
    assert other.beats(1, member="bob", group="bbbbbbbb.g").error_code == ErrorCode.UNKNOWN_MEMBER_ID


# --- administrators ---------------------------------------------------------------------------------------------------


def test_a_group_is_described_with_what_its_members_have_and_shall_have():
    tenant = Tenant()
    tenant.beats(instance_id="i", rack_id="r", server_assignor="range")
    tenant.beats(member="bob")
    group, none = tenant.describes(GROUP, f"{KEY}.none", include_authorized_operations=True)
    assert (group.group_id, group.group_state, group.group_epoch, group.assignment_epoch) == ("g", "Reconciling", 2, 2)
    assert (group.assignor_name, group.authorized_operations) == ("range", 328)
    ana, bob = group.members
    assert (ana.member_id, ana.instance_id, ana.rack_id, ana.member_epoch, ana.member_type) == ("ana", "i", "r", 1, 1)
    assert (ana.client_id, ana.client_host, ana.subscribed_topic_names) == ("cli", "/10.1.2.3", ("t",))
    assert [(row.topic_name, row.partitions) for row in ana.assignment.topic_partitions] == [("t", (0, 1))]
    assert [(row.topic_name, row.partitions) for row in bob.target_assignment.topic_partitions] == [("t", (1,))]
    assert bob.assignment.topic_partitions == ()
    assert none.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_whose_topics_one_may_not_see_is_not_described():
    tenant = Tenant()
    tenant.beats()
    tenant.denied.add(TOPIC)
    (group,) = tenant.describes(GROUP)
    assert (group.error_code, group.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ())


def test_a_classic_group_is_none_of_this_protocol_and_the_other_way_round():
    tenant = Tenant()
    tenant.member()
    assert tenant.describes(GROUP)[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    tenant = Tenant()
    tenant.beats()
    (group,) = tenant.call(handle_describe_groups, DescribeGroupsRequest((GROUP,)), 5).groups
    assert (group.error_code, group.group_state) == (ErrorCode.NONE, "Dead")


def test_groups_are_listed_with_their_types():
    tenant = Tenant()
    tenant.beats(group=f"{KEY}.new")
    tenant.member()

    def listed(**asked):
        groups = tenant.call(handle_list_groups, ListGroupsRequest(**asked), 5).groups
        return sorted((group.group_id, group.protocol_type, group.group_state, group.group_type) for group in groups)

    new, old = ("new", "consumer", "Stable", "consumer"), ("g", "consumer", "Stable", "classic")
    assert listed() == [old, new]
    assert listed(types_filter=("Consumer",)) == [new]
    assert listed(types_filter=("classic",)) == [old]
    assert listed(types_filter=("consumer",), states_filter=("Empty",)) == []


# --- offsets ----------------------------------------------------------------------------------------------------------


def test_a_member_commits_in_its_epoch():
    tenant = Tenant()
    tenant.beats()
    assert tenant.commit((0, 7, ""), version=9, member="ana", generation=1) == [ErrorCode.NONE]
    assert tenant.commit((0, 7, ""), version=9, member="ana", generation=0) == [ErrorCode.STALE_MEMBER_EPOCH]
    assert tenant.commit((0, 7, ""), version=8, member="ana", generation=1) == [ErrorCode.UNSUPPORTED_VERSION]


@pytest.mark.parametrize(
    ("member", "epoch", "error"),
    [
        ("ana", 1, ErrorCode.NONE),
        (None, -1, ErrorCode.NONE),
        ("ana", 3, ErrorCode.STALE_MEMBER_EPOCH),
        ("bob", 1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_member_is_told_offsets_in_its_epoch(member, epoch, error):
    tenant = Tenant()
    tenant.beats()
    asked = OffsetFetchRequestGroup(GROUP, member, epoch, (OffsetFetchRequestTopics(TOPIC, (0,)),))
    (group,) = tenant.call(handle_offset_fetch, OffsetFetchRequest(groups=(asked,)), 9).groups
    assert (group.error_code, len(group.topics)) == (error, 1 if error == ErrorCode.NONE else 0)
