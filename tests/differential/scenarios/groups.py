"""Consumer groups: joining, syncing, beating, leaving, describing, and the offsets they commit."""

from __future__ import annotations

from dataplane.protocol.api import ApiKey
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
from tests.differential.asking import Asker
from tests.differential.scenarios import scenario

_PROTOCOLS = (JoinGroupRequestProtocol("range", b"\0\1"), JoinGroupRequestProtocol("sticky", b"\0\2"))
STABLE_VERSION = 4  # of JoinGroup: the id is given in a first answer


def join(group: str, member: str = "", instance: str | None = None, **members: object) -> JoinGroupRequest:
    settings = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocol_type": "consumer"}
    return JoinGroupRequest(
        **{**settings, "protocols": _PROTOCOLS, **members}, group_id=group, member_id=member, group_instance_id=instance
    )


def member_of(asker: Asker, group: str, instance: str | None = None) -> tuple[str, int]:
    """A member of a stable group of one: its id and generation."""
    answer = asker.quietly(join(group, "", instance), 5)
    if answer.error_code == 79:
        answer = asker.quietly(join(group, answer.member_id, instance), 5)
    assert answer.error_code == 0, answer
    assigned = (SyncGroupRequestAssignment(answer.member_id, b"mine"),)
    synced = asker.quietly(
        SyncGroupRequest(group, answer.generation_id, answer.member_id, instance, assignments=assigned), 3
    )
    assert synced.error_code == 0, synced
    return answer.member_id, answer.generation_id


@scenario(ApiKey.JOIN_GROUP)
def join_group(asker: Asker) -> None:
    group = asker.name("g")
    first = asker.ask("first", join(group))
    if first is not None and first.error_code == 79:
        first = asker.ask("with the id that was given", join(group, first.member_id))
    member = first.member_id if first is not None else ""
    asker.ask("as leader again", join(group, member))
    asker.ask("an unknown member", join(group, "nobody"))
    asker.ask("another type", join(group, member, protocol_type="connect"))
    asker.ask("no protocol in common", join(group, member, protocols=(JoinGroupRequestProtocol("x", b""),)))
    asker.ask("an unknown member of an unknown group", join(asker.name("no"), "nobody"))
    asker.ask("the empty group", join(""))
    asker.ask("no type", join(asker.name("g2"), protocol_type=""))
    asker.ask("no protocols", join(asker.name("g3"), protocols=()))
    for timeout in (0, -1, 999, 2**31 - 1):
        asker.ask(f"session timeout {timeout}", join(asker.name("g4"), session_timeout_ms=timeout))
    if asker.version >= 5:
        static = asker.name("s")
        held = asker.ask("static", join(static, "", "i1"))
        old = held.member_id if held is not None else ""
        again = asker.ask("static again", join(static, "", "i1"))
        asker.ask("static with its old id", join(static, old, "i1"))
        new = again.member_id if again is not None else ""
        asker.ask("static with its id", join(static, new, "i1"))
        asker.ask("static with an unknown id", join(static, "nobody", "i1"))
        asker.ask("static with an unknown instance and a known id", join(static, new, "i9"))


@scenario(ApiKey.SYNC_GROUP)
def sync_group(asker: Asker) -> None:
    group = asker.name("g")
    member, generation = member_of(asker, group)

    def sync(label: str, of: str, number: int, who: str, **members: object) -> None:
        asker.ask(label, SyncGroupRequest(of, number, who, **members))

    sync("again", group, generation, member)
    sync("a wrong generation", group, generation + 5, member)
    sync("generation -1", group, -1, member)
    sync("an unknown member", group, generation, "nobody")
    sync("an unknown group", asker.name("no"), 1, "nobody")
    sync("the empty group", "", 1, "nobody")
    sync("no member", group, generation, "")
    if asker.version >= 3:
        sync("an unknown instance", group, generation, member, group_instance_id="i")
    if asker.version >= 5:
        sync("its protocol", group, generation, member, protocol_type="consumer", protocol_name="range")
        sync("another type", group, generation, member, protocol_type="connect", protocol_name="range")
        sync("another protocol", group, generation, member, protocol_type="consumer", protocol_name="sticky")


@scenario(ApiKey.HEARTBEAT)
def heartbeat(asker: Asker) -> None:
    group = asker.name("g")
    member, generation = member_of(asker, group)
    asker.ask("alive", HeartbeatRequest(group, generation, member))
    asker.ask("a wrong generation", HeartbeatRequest(group, generation + 1, member))
    asker.ask("an unknown member", HeartbeatRequest(group, generation, "nobody"))
    asker.ask("an unknown group", HeartbeatRequest(asker.name("no"), 1, "nobody"))
    asker.ask("the empty group", HeartbeatRequest("", 1, "nobody"))
    asker.ask("no member", HeartbeatRequest(group, generation, ""))
    if asker.version >= 3:
        static = asker.name("s")
        held, number = member_of(asker, static, "i1")
        asker.ask("static", HeartbeatRequest(static, number, held, "i1"))
        asker.ask("static, another id", HeartbeatRequest(static, number, "nobody", "i1"))
        asker.ask("an unknown instance", HeartbeatRequest(static, number, held, "i2"))


@scenario(ApiKey.LEAVE_GROUP)
def leave_group(asker: Asker) -> None:
    group = asker.name("g")
    member, _ = member_of(asker, group)

    def leave(label: str, of: str, *who: tuple[str, str | None]) -> None:
        if asker.version >= 3:
            asker.ask(label, LeaveGroupRequest(of, members=tuple(MemberIdentity(m, i) for m, i in who)))
        else:
            asker.ask(label, LeaveGroupRequest(of, who[0][0] if who else ""))

    leave("an unknown member", group, ("nobody", None))
    leave("an unknown group", asker.name("no"), ("nobody", None))
    leave("the empty group", "", ("nobody", None))
    leave("no member", group, ("", None))
    leave("one", group, (member, None))
    leave("one that has left", group, (member, None))
    if asker.version >= 3:
        leave("nobody", group)
        static = asker.name("s")
        member_of(asker, static, "i1")
        leave("an unknown instance", static, ("", "i9"))
        leave("an instance with another id", static, ("nobody", "i1"))
        leave("by instance, twice", static, ("", "i1"), ("", "i1"))


@scenario(ApiKey.DESCRIBE_GROUPS)
def describe_groups(asker: Asker) -> None:
    group = asker.name("g")
    member_of(asker, group)
    asker.ask("one", DescribeGroupsRequest((group,)))
    asker.ask("unknown", DescribeGroupsRequest((asker.name("no"),)))
    asker.ask("the empty name", DescribeGroupsRequest(("",)))
    asker.ask("none", DescribeGroupsRequest(()))
    asker.ask("the same twice", DescribeGroupsRequest((group, group)))
    if asker.version >= 3:
        asker.ask("authorised operations", DescribeGroupsRequest((group,), True))
    committed(asker, asker.name("e"), asker.topic("t"), 5)
    asker.ask("only offsets", DescribeGroupsRequest((asker.name("e"),)))


@scenario(ApiKey.LIST_GROUPS)
def list_groups(asker: Asker) -> None:
    member_of(asker, asker.name("g"))
    committed(asker, asker.name("e"), asker.topic("t"), 5)

    def mine(label: str, request: ListGroupsRequest) -> None:
        from dataclasses import replace

        from tests.differential.asking import Step

        answer = asker.quietly(request)
        own = tuple(found for found in answer.groups if found.group_id.startswith(asker.prefix))
        asker.steps.append(Step(label, asker.fields(replace(answer, groups=own))))

    mine("all", ListGroupsRequest())
    if asker.version >= 4:
        for states in (("Stable",), ("Empty",), ("stable",), ("Stable", "Empty"), ("Nonsense",), ("",)):
            mine(f"states {states}", ListGroupsRequest(states_filter=states))
    if asker.version >= 5:
        for types in (("classic",), ("consumer",), ("Classic",), ("nonsense",)):
            mine(f"types {types}", ListGroupsRequest(types_filter=types))


@scenario(ApiKey.DELETE_GROUPS)
def delete_groups(asker: Asker) -> None:
    group, empty = asker.name("g"), asker.name("e")
    member_of(asker, group)
    committed(asker, empty, asker.topic("t"), 5)
    asker.ask("none", DeleteGroupsRequest(()))
    asker.ask("one with members", DeleteGroupsRequest((group,)))
    asker.ask("unknown", DeleteGroupsRequest((asker.name("no"),)))
    asker.ask("the empty name", DeleteGroupsRequest(("",)))
    asker.ask("one that is empty, and one that is not", DeleteGroupsRequest((empty, group)))
    asker.ask("one that is gone", DeleteGroupsRequest((empty,)))
    committed(asker, empty, asker.name("t"), 5)
    asker.ask("the same twice", DeleteGroupsRequest((empty, empty)))


def commit(group: str, topic: str, *parts: tuple[int, int, str | None], **members: object) -> OffsetCommitRequest:
    partitions = tuple(OffsetCommitRequestPartition(p, offset, committed_metadata=text) for p, offset, text in parts)
    return OffsetCommitRequest(group_id=group, topics=(OffsetCommitRequestTopic(topic, partitions),), **members)


def committed(asker: Asker, group: str, topic: str, offset: int) -> None:
    """A group without members that has an offset."""
    answer = asker.quietly(commit(group, topic, (0, offset, "m")), 7)
    assert answer.topics[0].partitions[0].error_code == 0, answer


@scenario(ApiKey.OFFSET_COMMIT)
def offset_commit(asker: Asker) -> None:
    name, group = asker.topic("t", 2), asker.name("g")
    asker.ask("nothing", OffsetCommitRequest(group_id=asker.name("n")))
    asker.ask("without members", commit(asker.name("e"), name, (0, 5, "m")))
    asker.ask("an unknown partition", commit(asker.name("e"), name, (9, 5, "m")))
    asker.ask("a negative partition", commit(asker.name("e"), name, (-1, 5, "m")))
    asker.ask("an unknown topic", commit(asker.name("e"), asker.name("no"), (0, 5, "m")))
    asker.ask("one known, one unknown", commit(asker.name("e"), name, (0, 6, "m"), (9, 5, "m")))
    asker.ask("the same twice", commit(asker.name("e"), name, (0, 7, "m"), (0, 8, "m")))
    asker.ask("no metadata", commit(asker.name("e"), name, (0, 5, None)))
    asker.ask("long metadata", commit(asker.name("e"), name, (0, 5, "m" * 4096)))
    asker.ask("too long metadata", commit(asker.name("e"), name, (0, 5, "m" * 4097)))
    asker.ask("a negative offset", commit(asker.name("e"), name, (0, -5, "m")))
    asker.ask("the empty group", commit("", name, (0, 5, "m")))
    if asker.version >= 1:
        member, generation = member_of(asker, group)

        def of(number: int, who: str, **members: object) -> OffsetCommitRequest:
            known = {"generation_id_or_member_epoch": number, "member_id": who, **members}
            return commit(group, name, (0, 5, "m"), **known)

        asker.ask("a member", of(generation, member))
        asker.ask("a wrong generation", of(generation + 1, member))
        asker.ask("an unknown member", of(generation, "nobody"))
        asker.ask("generation -1 of a group with members", of(-1, ""))
        unknown = {"generation_id_or_member_epoch": 3, "member_id": "nobody"}
        asker.ask("a generation of an unknown group", commit(asker.name("u"), name, (0, 5, "m"), **unknown))
        if asker.version >= 7:
            asker.ask("an unknown instance", of(generation, member, group_instance_id="i"))


@scenario(ApiKey.OFFSET_FETCH)
def offset_fetch(asker: Asker) -> None:
    name, group = asker.topic("t", 3), asker.name("g")
    if asker.version > 0:
        asker.quietly(commit(group, name, (0, 5, "m"), (1, 6, None)), 7)
    else:
        asker.quietly(commit(group, name, (0, 5, "m"), (1, 6, None)), 0)

    def get(label: str, of: str, topics: dict[str, tuple[int, ...]] | None) -> None:
        if asker.version >= 8:
            wanted = None if topics is None else tuple(OffsetFetchRequestTopics(t, p) for t, p in topics.items())
            asker.ask(label, OffsetFetchRequest(groups=(OffsetFetchRequestGroup(of, topics=wanted),)))
        else:
            old = None if topics is None else tuple(OffsetFetchRequestTopic(t, p) for t, p in topics.items())
            asker.ask(label, OffsetFetchRequest(of, old))

    get("one", group, {name: (0,)})
    get("no metadata", group, {name: (1,)})
    get("never committed", group, {name: (2,)})
    get("an unknown partition", group, {name: (9,)})
    get("an unknown topic", group, {asker.name("no"): (0,)})
    get("a name that cannot be", group, {"a b": (0,)})
    get("an unknown group", asker.name("no"), {name: (0, 1)})
    get("the empty group", "", {name: (0,)})
    get("the same twice", group, {name: (0, 0)})
    get("no topics", group, {})
    get("no partitions", group, {name: ()})
    if asker.version >= 2:
        get("all", group, None)
        get("all of an unknown group", asker.name("no"), None)
    if asker.version >= 8:
        wanted = (OffsetFetchRequestTopics(name, (0,)),)
        both = (OffsetFetchRequestGroup(group, topics=wanted), OffsetFetchRequestGroup(asker.name("no"), topics=None))
        asker.ask("two groups", OffsetFetchRequest(groups=both))
        asker.ask("no groups", OffsetFetchRequest(groups=()))
        asker.ask("stable", OffsetFetchRequest(groups=both[:1], require_stable=True))


@scenario(ApiKey.OFFSET_DELETE)
def offset_delete(asker: Asker) -> None:
    name, group = asker.topic("t", 2), asker.name("g")
    committed(asker, group, name, 5)

    def delete(label: str, of: str, topic: str, *partitions: int) -> None:
        parts = tuple(map(OffsetDeleteRequestPartition, partitions))
        asker.ask(label, OffsetDeleteRequest(of, (OffsetDeleteRequestTopic(topic, parts),)))

    delete("never committed", group, name, 1)
    delete("an unknown partition", group, name, 9)
    delete("an unknown topic", group, asker.name("no"), 0)
    delete("an unknown group", asker.name("no"), name, 0)
    delete("the empty group", "", name, 0)
    delete("one", group, name, 0)
    asker.ask("nothing", OffsetDeleteRequest(group, ()))
    delete("again", group, name, 0)
