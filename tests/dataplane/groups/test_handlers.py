"""Requests become events and results become messages, with the names and addresses that the session may see."""

from types import SimpleNamespace

import pytest

from dataplane.cluster.metadata import OFFSETS_TOPIC, PartitionMetadata
from dataplane.coordination.placement import partition_of
from dataplane.coordination.runtime import LOAD_RETRY_S
from dataplane.handlers.awaited_topic import CREATION_WAIT_S
from dataplane.handlers.context import refusal_of
from dataplane.handlers.groups.find_coordinator import handle_find_coordinator
from dataplane.handlers.groups.membership import (
    handle_delete_groups,
    handle_describe_groups,
    handle_heartbeat,
    handle_join_group,
    handle_leave_group,
    handle_list_groups,
    handle_sync_group,
)
from dataplane.handlers.groups.offsets import (
    handle_offset_commit,
    handle_offset_delete,
    handle_offset_fetch,
)
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import FindCoordinatorRequest
from dataplane.protocol.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    ListGroupsRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from dataplane.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from dataplane.tasks import Future, Task, resolved
from dataplane.tenancy.access import authorize
from quota.contracts.namespace import InstanceNames
from tests.dataplane.groups.support import PARTITIONS, World
from tests.simulation.zookeeper import ZooKeeperServer
from tests.support.answering import SlicesAtOnce, answer_of

KEY = "aaaaaaaa"
GROUP = f"{KEY}.g"
TOPIC = f"{KEY}.t"


def partition(leader):
    return PartitionMetadata(leader, 0, (leader,), (leader,), ())


class FixedMetadata:
    """What handlers ask of the metadata."""

    def __init__(self):
        self.topics = {
            TOPIC: {0: partition(1), 1: partition(1)},
            OFFSETS_TOPIC: {index: partition(index % 2 + 1) for index in range(PARTITIONS)},
        }
        self.brokers = {1: None, 2: None}

    def partitions(self, topic):
        return self.topics.get(topic, {})

    def partition(self, topic, index):
        return self.partitions(topic).get(index)


class Tenant:
    """A session of instance aaaaaaaa; `call` runs a handler and puts its answer through the codec, as it is sent."""

    def __init__(self, world=None):
        self.world = world or World()
        self.denied = set()
        self.created = []
        loop = self.world.loop
        self.broker = SimpleNamespace(
            groups=self.world.coordinator,
            metadata=FixedMetadata(),
            doors=SimpleNamespace(loop=loop, zookeeper=ZooKeeperServer(loop.call_later).connect()),
            ensure_internal_topic=self.ensure,
            slices=SlicesAtOnce(),
        )
        self.session = SimpleNamespace(instance=None, names=InstanceNames(KEY), peer="10.1.2.3")

    def topic_refusal(self, _operation, topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED if topic in self.denied else ErrorCode.NONE

    def ensure(self, name):
        self.created.append(name)
        return Future()

    def call(self, handle, request, version, run_s=0.1):
        ctx = SimpleNamespace(
            broker=self.broker,
            session=self.session,
            version=version,
            is_long=False,
            owner=KEY,
            client_id="cli",
            owns=self.session.names.owns,
            refusal=lambda operation, resource: refusal_of(authorize(self.session, operation, resource)),
            may=lambda operation, resource: not self.topic_refusal(operation, resource.name),
            topic_refusal=self.topic_refusal,
            group_refusal=lambda _operation, _group: ErrorCode.NONE,
            cluster_refusal=lambda _operation: ErrorCode.NONE,
            broker_address=lambda broker_id: (f"vip-{broker_id}", 20_000 + broker_id) if broker_id > 0 else None,
        )
        reply = answer_of(handle(ctx, request))
        if isinstance(reply, Future):
            self.world.run(run_s)
            reply = reply.result()
        return decode(type(reply), version, encode(reply, version, self.session.names))

    def join(self, version=5, member_id="", **more):
        asked = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol("range", b"meta"),),
            **more,
        )
        return self.call(handle_join_group, asked, version)

    def member(self):
        """A stable group of one."""
        member_id = self.join(version=2).member_id
        assigned = (SyncGroupRequestAssignment(member_id, b"all"),)
        synced = self.call(handle_sync_group, SyncGroupRequest(GROUP, 1, member_id, assignments=assigned), 3)
        assert synced.assignment == b"all"
        return member_id

    def commit(self, *partitions, version=8, topic=TOPIC, member="", generation=-1, **more):
        rows = tuple(OffsetCommitRequestPartition(p, o, committed_metadata=m) for p, o, m in partitions)
        asked = OffsetCommitRequest(GROUP, generation, member, topics=(OffsetCommitRequestTopic(topic, rows),), **more)
        answer = self.call(handle_offset_commit, asked, version)
        return [p.error_code for p in answer.topics[0].partitions]


# --- membership -------------------------------------------------------------------------------------------------------


def test_from_version_4_a_dynamic_member_needs_an_id():
    tenant = Tenant()
    told = tenant.join(version=4)
    assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert told.member_id.startswith("cli-")
    assert tenant.join(version=4, member_id=told.member_id).error_code == ErrorCode.NONE


def test_before_version_4_and_for_static_members_an_id_is_made_up_at_once():
    assert Tenant().join(version=3).error_code == ErrorCode.NONE
    joined = Tenant().join(version=5, group_instance_id="one")
    assert joined.error_code == ErrorCode.NONE
    assert joined.member_id.startswith("one-")


@pytest.mark.parametrize(("version", "name"), [(6, ""), (7, None)])
def test_a_refused_join_has_no_protocol(version, name):
    refused = Tenant().join(version=version, member_id="nobody")
    assert (refused.error_code, refused.protocol_name) == (ErrorCode.UNKNOWN_MEMBER_ID, name)


def test_a_group_with_members_must_have_a_name():
    tenant, unnamed = Tenant(), f"{KEY}."
    asked = JoinGroupRequest(unnamed, 10_000, 10_000, "", None, "consumer", (JoinGroupRequestProtocol("r", b""),))
    assert tenant.call(handle_join_group, asked, 3).error_code == ErrorCode.INVALID_GROUP_ID
    for handle, request in (
        (handle_sync_group, SyncGroupRequest(unnamed, 1, "m")),
        (handle_heartbeat, HeartbeatRequest(unnamed, 1, "m")),
        (handle_leave_group, LeaveGroupRequest(unnamed, "m")),
    ):
        assert tenant.call(handle, request, 1).error_code == ErrorCode.INVALID_GROUP_ID


def test_from_version_5_a_sync_says_its_protocol():
    tenant = Tenant()
    member = tenant.member()
    without = tenant.call(handle_sync_group, SyncGroupRequest(GROUP, 1, member), 5)
    assert without.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    said = SyncGroupRequest(GROUP, 1, member, None, "consumer", "range")
    assert tenant.call(handle_sync_group, said, 5).protocol_name == "range"


def test_one_member_leaves_in_old_versions_and_several_in_new_ones():
    tenant = Tenant()
    assert tenant.call(handle_leave_group, LeaveGroupRequest(GROUP, "x"), 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    member = tenant.member()
    both = LeaveGroupRequest(GROUP, members=(MemberIdentity(member), MemberIdentity("x")))
    left = tenant.call(handle_leave_group, both, 3)
    assert left.error_code == ErrorCode.NONE
    assert [m.error_code for m in left.members] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]


def test_groups_are_described_with_their_members():
    tenant = Tenant()
    member = tenant.member()
    answer = tenant.call(handle_describe_groups, DescribeGroupsRequest((GROUP, f"{KEY}.none")), 4)
    group, none = answer.groups
    assert (group.group_id, group.group_state, group.protocol_data) == ("g", "Stable", "range")
    described = group.members[0]
    assert (described.member_id, described.client_id, described.client_host) == (member, "cli", "/10.1.2.3")
    assert (described.member_metadata, described.member_assignment) == (b"meta", b"all")
    assert (none.error_code, none.group_state, none.members) == (ErrorCode.NONE, "Dead", ())


def test_from_version_6_on_a_group_that_is_not_there_is_an_error():
    tenant = Tenant()
    tenant.member()
    group, none = tenant.call(handle_describe_groups, DescribeGroupsRequest((GROUP, f"{KEY}.none"), True), 6).groups
    assert (group.error_code, group.error_message, group.group_state) == (ErrorCode.NONE, None, "Stable")
    assert (none.error_code, none.group_id, none.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "none", "Dead")
    assert none.error_message == "there is no such group of the classic protocol"
    assert none.authorized_operations == -(2**31), "of nothing"
    older = tenant.call(handle_describe_groups, DescribeGroupsRequest((f"{KEY}.none",), True), 5).groups[0]
    assert (older.error_code, older.error_message, older.group_state) == (ErrorCode.NONE, None, "Dead")


def test_operations_are_shown_only_to_who_asks():
    tenant = Tenant()
    tenant.member()
    shown = [
        tenant.call(handle_describe_groups, DescribeGroupsRequest((GROUP,), asked), 3).groups[0].authorized_operations
        for asked in (False, True)
    ]
    assert shown == [-(2**31), 328]


def test_a_tenant_lists_its_own_groups_only():
    tenant = Tenant()
    tenant.member()
    tenant.world.alone(group="bbbbbbbb.g")
    tenant.commit((0, 1, ""), version=8)
    listed = tenant.call(handle_list_groups, ListGroupsRequest(), 4)
    assert [(g.group_id, g.protocol_type, g.group_state) for g in listed.groups] == [("g", "consumer", "Stable")]
    for states, count in (("stable",), 1), (("Empty", "Dead"), 0):
        assert len(tenant.call(handle_list_groups, ListGroupsRequest(states), 4).groups) == count


def test_deleting_groups_answers_for_each():
    tenant = Tenant()
    tenant.member()
    answer = tenant.call(handle_delete_groups, DeleteGroupsRequest((GROUP, f"{KEY}.none")), 2)
    assert [(r.group_id, r.error_code) for r in answer.results] == [
        ("g", ErrorCode.NON_EMPTY_GROUP),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
    ]


# --- offsets ----------------------------------------------------------------------------------------------------------


def fetch(tenant, version=5, wanted=((TOPIC, (0, 1, 9)),), **more):
    topics = None if wanted is None else tuple(OffsetFetchRequestTopic(*topic) for topic in wanted)
    answer = tenant.call(handle_offset_fetch, OffsetFetchRequest(GROUP, topics, **more), version)
    found = [
        (t.name, p.partition_index, p.committed_offset, p.metadata, p.error_code)
        for t in answer.topics
        for p in t.partitions
    ]
    return answer.error_code, found


def test_what_is_committed_is_fetched_with_its_metadata_and_the_rest_is_minus_one():
    tenant = Tenant()
    assert tenant.commit((0, 42, "note")) == [ErrorCode.NONE]
    assert fetch(tenant) == (
        ErrorCode.NONE,
        [("t", 0, 42, "note", 0), ("t", 1, -1, "", 0), ("t", 9, -1, "", 0)],
    )


def test_a_group_that_does_not_exist_has_no_offsets_and_no_error():
    assert fetch(Tenant(), wanted=((TOPIC, (0,)),)) == (ErrorCode.NONE, [("t", 0, -1, "", 0)])
    assert fetch(Tenant(), wanted=None) == (ErrorCode.NONE, [])


def test_all_offsets_of_a_group_are_those_the_session_may_see():
    tenant = Tenant()
    tenant.broker.metadata.topics[f"{KEY}.secret"] = {0: partition(1)}
    tenant.commit((0, 1, ""), (1, 2, ""))
    tenant.commit((0, 3, ""), topic=f"{KEY}.secret")
    tenant.denied.add(f"{KEY}.secret")
    assert [row[:3] for row in fetch(tenant, wanted=None)[1]] == [("t", 0, 1), ("t", 1, 2)]
    named = fetch(tenant, wanted=((f"{KEY}.secret", (0,)),))[1]
    assert named == [("secret", 0, -1, "", ErrorCode.TOPIC_AUTHORIZATION_FAILED)]


def test_commits_are_refused_partition_by_partition():
    tenant = Tenant()
    assert tenant.commit((0, 1, ""), (7, 1, ""), (1, 1, "x" * 5000)) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
    ]
    assert tenant.commit((0, 1, ""), topic=f"{KEY}.none") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    tenant.denied.add(TOPIC)
    assert tenant.commit((0, 1, "")) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


def test_version_8_fetches_several_groups_each_with_its_error():
    tenant = Tenant()
    tenant.commit((0, 5, ""))
    index = partition_of(f"{KEY}.elsewhere", PARTITIONS)
    assert index != partition_of(GROUP, PARTITIONS)
    tenant.world.coordinator.on_leadership(OFFSETS_TOPIC, index, None)
    asked = (
        OffsetFetchRequestGroup(GROUP, topics=(OffsetFetchRequestTopics(TOPIC, (0,)),)),
        OffsetFetchRequestGroup(f"{KEY}.elsewhere", topics=None),
    )
    here, elsewhere = tenant.call(handle_offset_fetch, OffsetFetchRequest(groups=asked), 8).groups
    assert (here.group_id, here.topics[0].name, here.topics[0].partitions[0].committed_offset) == ("g", "t", 5)
    assert (elsewhere.group_id, elsewhere.error_code) == ("elsewhere", ErrorCode.NOT_COORDINATOR)


def test_before_version_2_an_error_of_the_group_is_in_each_partition():
    tenant = Tenant()
    tenant.world.resign()
    assert fetch(tenant, version=1, wanted=((TOPIC, (0,)),))[1] == [("t", 0, -1, "", ErrorCode.NOT_COORDINATOR)]
    assert fetch(tenant, version=2) == (ErrorCode.NOT_COORDINATOR, [])


def test_who_wants_stable_offsets_is_told_of_commits_under_way():
    tenant = Tenant()
    tenant.commit((0, 1, ""))
    tenant.world.log.slow = True
    Task(handle_offset_commit_later(tenant))
    unstable = fetch(tenant, version=7, wanted=((TOPIC, (0,)),), require_stable=True)[1]
    assert unstable == [("t", 0, -1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT)]
    assert fetch(tenant, version=7, wanted=((TOPIC, (0,)),))[1] == [("t", 0, 1, "", 0)]


async def handle_offset_commit_later(tenant):
    from dataplane.groups.commits import Commit, Offset

    await tenant.world.coordinator.commit(GROUP, Commit({(TOPIC, 0): Offset(2)}))


def test_version_0_keeps_offsets_in_zookeeper():
    tenant = Tenant()
    assert fetch(tenant, version=0, wanted=((TOPIC, (0,)),))[1] == [
        ("t", 0, -1, "", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    ]
    for offset in (3, 4):
        assert tenant.commit((0, offset, ""), version=0) == [ErrorCode.NONE]
    assert fetch(tenant, version=0, wanted=((TOPIC, (0,)),))[1] == [("t", 0, 4, "", 0)]
    assert tenant.world.coordinator.committed(GROUP) == {}


@pytest.mark.parametrize("name", ["../bbbbbbbb.g", "a/b", "a\0b", ""])
def test_a_group_name_cannot_lead_out_of_its_own_node(name):
    from dataplane.groups import legacy

    problem = legacy.group_problem(f"{KEY}.{name}" if name else "")
    assert problem == ErrorCode.INVALID_GROUP_ID


def test_offsets_are_deleted_partition_by_partition():
    tenant = Tenant()
    tenant.commit((0, 1, ""), (1, 1, ""))
    rows = (OffsetDeleteRequestPartition(0), OffsetDeleteRequestPartition(9))
    asked = OffsetDeleteRequest(GROUP, (OffsetDeleteRequestTopic(TOPIC, rows),))
    answer = tenant.call(handle_offset_delete, asked, 0)
    assert [p.error_code for p in answer.topics[0].partitions] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert [row[1] for row in fetch(tenant, wanted=None)[1]] == [1]


# --- FindCoordinator --------------------------------------------------------------------------------------------------


def test_the_coordinator_is_the_leader_of_the_groups_partition_at_the_address_of_this_session():
    tenant = Tenant()
    leader = partition_of(GROUP, PARTITIONS) % 2 + 1
    found = tenant.call(handle_find_coordinator, FindCoordinatorRequest("g"), 0)
    assert (found.node_id, found.host, found.port) == (leader, f"vip-{leader}", 20_000 + leader)
    for version in (4, 5, 6):
        several = tenant.call(handle_find_coordinator, FindCoordinatorRequest(coordinator_keys=("g", "h")), version)
        assert [(c.key, c.error_code) for c in several.coordinators] == [("g", 0), ("h", 0)]
        assert several.coordinators[0].node_id == leader


def test_a_dead_leader_is_not_available():
    tenant = Tenant()
    tenant.broker.metadata.brokers = {}
    found = tenant.call(handle_find_coordinator, FindCoordinatorRequest("g"), 2)
    assert (found.error_code, found.node_id, found.port) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, -1)


def test_a_leader_that_cannot_load_the_groups_does_not_name_itself():
    tenant = Tenant()
    tenant.world.resign()
    tenant.world.log.read_error = OSError("the disk")
    tenant.world.elect()
    found = tenant.call(handle_find_coordinator, FindCoordinatorRequest("g"), 2)
    assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    tenant.world.log.read_error = None
    tenant.world.run(LOAD_RETRY_S)
    assert tenant.call(handle_find_coordinator, FindCoordinatorRequest("g"), 2).error_code == ErrorCode.NONE


def test_the_first_question_creates_the_topic_and_waits_for_it_a_little():
    tenant = Tenant()
    del tenant.broker.metadata.topics[OFFSETS_TOPIC]
    found = tenant.call(handle_find_coordinator, FindCoordinatorRequest("g"), 2, run_s=CREATION_WAIT_S + 0.1)
    assert tenant.created == [OFFSETS_TOPIC]
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    def create(name):
        tenant.broker.metadata.topics[name] = {0: partition(2)}
        return resolved(None)

    tenant.broker.ensure_internal_topic = create
    assert tenant.call(handle_find_coordinator, FindCoordinatorRequest("g"), 2).node_id == 2


def test_of_keys_of_another_type_there_is_no_coordinator_and_asking_creates_nothing():
    tenant = Tenant()
    found = tenant.call(handle_find_coordinator, FindCoordinatorRequest("tx", 2), 1)
    assert (found.error_code, found.node_id) == (ErrorCode.INVALID_REQUEST, -1)
    share = FindCoordinatorRequest(key_type=2, coordinator_keys=("g:AAAAAAAAAAAAAAAAAAAAAA:0",))
    assert tenant.call(handle_find_coordinator, share, 6).coordinators[0].error_code == ErrorCode.INVALID_REQUEST
    assert tenant.created == []


@pytest.mark.parametrize("timeout_ms", [-(2**31), -1, 0])
def test_a_member_that_grants_no_time_does_not_make_a_rebalance_that_never_ends(timeout_ms):
    tenant = Tenant()
    ask = JoinGroupRequest(
        GROUP, 10_000, timeout_ms, "", "static", "consumer", (JoinGroupRequestProtocol("range", b""),)
    )
    tenant.call(handle_join_group, ask, 5)
    group = tenant.world.coordinator.find(GROUP).group
    assert [member.rebalance_timeout_ms >= 1_000 for member in group.members.values()] == [True]


def test_names_of_groups_and_instances_have_an_end():
    tenant = Tenant()
    protocols = (JoinGroupRequestProtocol("range", b""),)
    long_group = JoinGroupRequest(GROUP + "g" * 20_000, 10_000, 10_000, "", None, "consumer", protocols)
    assert tenant.call(handle_join_group, long_group, 5).error_code == ErrorCode.INVALID_GROUP_ID
    long_instance = JoinGroupRequest(GROUP, 10_000, 10_000, "", "i" * 20_000, "consumer", protocols)
    assert tenant.call(handle_join_group, long_instance, 5).error_code == ErrorCode.INVALID_REQUEST
    topics = (OffsetCommitRequestTopic(TOPIC, (OffsetCommitRequestPartition(0, 5),)),)
    answer = tenant.call(handle_offset_commit, OffsetCommitRequest(GROUP + "g" * 20_000, topics=topics), 2)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_GROUP_ID


def test_what_is_asked_twenty_thousand_times_is_answered_once():
    tenant = Tenant()
    assert len(tenant.call(handle_describe_groups, DescribeGroupsRequest((GROUP,) * 20_000), 0).groups) == 1
    everything = (OffsetFetchRequestGroup(GROUP, None),) * 20_000
    assert len(tenant.call(handle_offset_fetch, OffsetFetchRequest(groups=everything), 8).groups) == 1


def test_another_kind_of_key_is_an_invalid_request():
    found = Tenant().call(handle_find_coordinator, FindCoordinatorRequest("g", 7), 1)
    assert found.error_code == ErrorCode.INVALID_REQUEST
