"""Leaks that are put into the product one at a time: the matrix finds each, and says where.

A leak is what somebody who adds an API could forget: to ask whose a thing is, to leave names out of a sentence, to keep pools
apart.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from dataplane.handlers.admin import client_quotas, log_dirs, resources, scram_users, topics
from dataplane.handlers.context import RequestContext
from dataplane.handlers.discovery import metadata
from dataplane.handlers.groups import membership
from dataplane.handlers.outcome import CloseConnectionError
from dataplane.handlers.records import fetch, fetch_reading, producers
from dataplane.handlers.table import HANDLERS
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages.discovery import MetadataResponseTopic
from dataplane.protocol.messages.groups import ListedGroup
from dataplane.protocol.messages.topics import DeletableTopicResult
from dataplane.requests.dispatch import ClientConnection
from dataplane.tenancy import logins
from dataplane.tenancy.logins import Logins
from dataplane.throttle.rule_writer import read_rules
from quota.contracts.namespace import KEY_LENGTH, ForeignNameError, InstanceNames, split_physical
from quota.contracts.users import UserSet
from tests.leaks.matrix import Matrix
from tests.leaks.virtual import B, two_instances


def found(*apis):
    """What the matrix says of these, in its newest and oldest versions: (API, where, what)."""
    _, sides = two_instances(survives=(ForeignNameError,))
    report = Matrix(sides, apis=frozenset(apis), edges=True).run()
    return {(leak.api, leak.where, leak.what) for leak in report.leaks}


def only(leaks, *apis):
    """The places, where all are in these APIs, and each has some."""
    assert {each for each, *_ in leaks} == set(apis)
    return {f"{where}: {what}" for _, where, what in leaks}


def in_words(physical):
    """As its tenant calls it."""
    return split_physical(physical)[1]


def exists_elsewhere(names, physical):
    return any(name != physical and name[KEY_LENGTH:] == physical[KEY_LENGTH:] for name in names)


def with_handler(monkeypatch, key, handle):
    monkeypatch.setitem(HANDLERS, int(key), replace(HANDLERS[key], handle=handle))


def test_a_foreign_topic_that_is_refused_while_an_absent_one_is_not_there(monkeypatch):
    honest = metadata._missing

    def missing(ctx, request, name, pace):
        if exists_elsewhere(ctx.broker.metadata.topics(), name):
            return MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
        return (yield from honest(ctx, request, name, pace))

    monkeypatch.setattr(metadata, "_missing", missing)
    places = only(found("METADATA"), "METADATA")
    assert "of one topics.name: B's name: the answer differs" in places


def test_a_foreign_topic_id_that_is_resolved(monkeypatch):
    def by_id(ctx, topic_id, pace):
        name = ctx.broker.metadata.topic_of_id(topic_id)
        if name is None:
            return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
        described = yield from metadata._described(ctx, name, pace)
        return replace(described, name=ctx.session.names.topic_in(in_words(name)))

    monkeypatch.setattr(metadata, "_by_id", by_id)
    places = only(found("METADATA"), "METADATA")
    assert "of one topics.topic_id: the id of B's own topic: the answer differs" in places
    assert "of one topics.topic_id: the id of B's own topic: the answer holds a word of B's" in places


def test_a_foreign_topic_that_is_read_by_its_id(monkeypatch):
    def name(self, topic_id):
        return self._ctx.broker.metadata.topic_of_id(topic_id)

    monkeypatch.setattr(fetch_reading.ConsumerReader, "_name", name)
    monkeypatch.setattr(RequestContext, "topic_refusal", lambda *_: ErrorCode.NONE)
    places = only(found("FETCH"), "FETCH")
    assert "alone topics.topic_id: the id of B's own topic: the answer holds a word of B's" in places


def test_a_physical_name_in_a_sentence(monkeypatch):
    def topic(ctx, operation, name):
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no {ctx.session.names.topic_in(name)}")

    monkeypatch.setattr(resources, "_topic", topic)
    places = only(found("DESCRIBE_CONFIGS"), "DESCRIBE_CONFIGS")
    assert "of type topic resources.resource_name: B's name: the answer holds A's physical names" in places


def test_the_state_of_a_foreign_group(monkeypatch):
    honest = membership._describe

    def describe(ctx, group_id, pace):
        groups, _ = ctx.broker.groups.groups()
        for entry in groups:
            if exists_elsewhere([entry.group.group_id], group_id):
                return replace((yield from membership._described(entry.group, pace)), group_id=group_id)
        return (yield from honest(ctx, group_id, pace))

    monkeypatch.setattr(membership, "_describe", describe)
    places = only(found("DESCRIBE_GROUPS"), "DESCRIBE_GROUPS")
    assert any(place.endswith("B's name: the answer differs") for place in places)


def test_a_list_with_the_groups_of_all(monkeypatch):
    honest = HANDLERS[ApiKey.LIST_GROUPS].handle

    def list_groups(ctx, request):
        own = yield from honest(ctx, request)
        groups, _ = ctx.broker.groups.groups()
        more = [ListedGroup(ctx.session.names.group_in(in_words(entry.group.group_id))) for entry in groups]
        return replace(own, groups=tuple(more))

    with_handler(monkeypatch, ApiKey.LIST_GROUPS, list_groups)
    leaks = found("LIST_GROUPS")
    assert any("what is told has changed" in place for place in only(leaks, "LIST_GROUPS"))


def test_fetch_sessions_in_one_pool(monkeypatch):
    monkeypatch.setattr(fetch, "pool_of", lambda ctx: ctx.broker.fetch_sessions.pool(""))
    places = only(found("FETCH"), "FETCH")
    assert "in a session session_id: B's session: the answer differs" in places
    assert "untouched: B's session has ended" in places


def test_the_users_of_all_instances(monkeypatch):
    honest = scram_users.spec_of

    def spec_of(ctx, operation):
        everybody = tuple(user for each in ctx.broker.registry.all() for user in each.users.values())
        return replace(honest(ctx, operation), users=UserSet(1, everybody))

    monkeypatch.setattr(scram_users, "spec_of", spec_of)
    places = only(found("DESCRIBE_USER_SCRAM_CREDENTIALS"), "DESCRIBE_USER_SCRAM_CREDENTIALS")
    assert "of one users.name: B's user: the answer differs" in places
    assert any(place.startswith("unchanged, of all") for place in places)


def test_a_user_of_another_instance_who_can_log_in(monkeypatch):
    honest = Logins._exchange

    def exchange(self, instance, mechanism):
        everybody = {**instance.users, **others[0].users}
        return honest(self, SimpleNamespace(names=instance.names, users=everybody, spec=instance.spec), mechanism)

    others = []
    cluster, sides = two_instances()
    others.append(cluster.brokers[1].registry.get(B))
    monkeypatch.setattr(Logins, "_exchange", exchange)
    monkeypatch.setattr(logins, "_still_there", lambda *_: True)
    report = Matrix(sides, apis=frozenset({"SASL_AUTHENTICATE"}), edges=True).run()
    assert {leak.where for leak in report.leaks} >= {
        "PLAIN: B's user with its password",
        "SCRAM-SHA-256: B's user with its password",
    }


def test_the_quotas_of_another_instance(monkeypatch):
    async def rules(ctx):
        own = await read_rules(ctx.broker.doors.zookeeper, ctx.session.instance.spec.id)
        return (*own, *(await read_rules(ctx.broker.doors.zookeeper, B)))

    monkeypatch.setattr(client_quotas, "_rules", rules)
    places = only(found("DESCRIBE_CLIENT_QUOTAS"), "DESCRIBE_CLIENT_QUOTAS")
    assert "of a user components.match: B's user of a quota: the answer differs" in places


def test_a_topic_that_another_tenant_deletes_by_its_id(monkeypatch):
    honest = topics._deletable

    def deletable(ctx, state):
        if state.name is not None:
            return honest(ctx, state)
        name = ctx.broker.controller.topic_name(state.topic_id)
        return name or DeletableTopicResult(None, state.topic_id, ErrorCode.UNKNOWN_TOPIC_ID)

    monkeypatch.setattr(topics, "_deletable", deletable)
    leaks = found("DELETE_TOPICS", "METADATA")
    assert any(api == "METADATA" and where.startswith("untouched") for api, where, _ in leaks)
    assert any(api == "DELETE_TOPICS" and "topics.topic_id" in where for api, where, _ in leaks)


def test_a_physical_name_that_leads_on(monkeypatch):
    """Whoever takes a name that looks physical for one makes everybody's topics everybody's."""

    def topic_in(self, name):
        return name if split_physical(name) is not None else f"{self.key}.{name}"

    def topic_out(self, name):
        return name[KEY_LENGTH + 1 :] if name.startswith(f"{self.key}.") else name

    monkeypatch.setattr(InstanceNames, "topic_in", topic_in)
    monkeypatch.setattr(InstanceNames, "topic_out", topic_out)
    places = only(found("LIST_OFFSETS"), "LIST_OFFSETS")
    assert "of the end topics.name: B's physical name: the answer differs" in places


def test_a_broker_that_is_somebody_elses(monkeypatch):
    honest = resources._broker

    def broker(ctx, name):
        if name.isdecimal() and int(name) in ctx.broker.metadata.brokers and name != str(ctx.broker.config.id):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"ask broker {name} itself")
        return honest(ctx, name)

    monkeypatch.setattr(resources, "_broker", broker)
    places = only(found("DESCRIBE_CONFIGS"), "DESCRIBE_CONFIGS")
    assert "of type broker resources.resource_name: a broker of B's alone: the answer differs" in places


def test_a_directory_as_it_is_called(monkeypatch):
    monkeypatch.setattr(log_dirs, "TENANTS_DIRECTORY", "/data/1")
    places = only(found("DESCRIBE_LOG_DIRS"), "DESCRIBE_LOG_DIRS")
    assert "unchanged, of all, its own: the answer holds a data directory" in places


def test_a_connection_that_ends_for_what_is_foreign(monkeypatch):
    honest = HANDLERS[ApiKey.HEARTBEAT].handle

    def heartbeat(ctx, request):
        groups, _ = ctx.broker.groups.groups()
        if exists_elsewhere([entry.group.group_id for entry in groups], request.group_id) and request.member_id:
            raise CloseConnectionError("somebody else's")
        return honest(ctx, request)

    with_handler(monkeypatch, ApiKey.HEARTBEAT, heartbeat)
    assert any("the connection differs" in place for place in only(found("HEARTBEAT"), "HEARTBEAT"))


def test_an_api_that_is_not_for_tenants_and_is_served(monkeypatch):
    monkeypatch.setattr(ClientConnection, "_row", lambda _, header: HANDLERS.get(header.api_key))
    places = only(found("ALTER_REPLICA_LOG_DIRS", "ELECT_LEADERS"), "ELECT_LEADERS", "ALTER_REPLICA_LOG_DIRS")
    assert places == {"refused: it is answered"}


def test_producers_of_a_foreign_topic(monkeypatch):
    honest = producers._partition

    def partition(ctx, topic, index, pace):
        others = [name for name in ctx.broker.metadata.topics() if exists_elsewhere([name], topic)]
        return (yield from honest(ctx, others[0] if others else topic, index, pace))

    monkeypatch.setattr(producers, "_partition", partition)
    places = only(found("DESCRIBE_PRODUCERS"), "DESCRIBE_PRODUCERS")
    assert any("B's name: the connection differs" in place for place in places)  # the name is stopped on its way out
