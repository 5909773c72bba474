"""Ten thousand topics in an answer hold no more objects than they must: what is dropped at once is freed in one turn."""

from types import SimpleNamespace

from dataplane.cluster.topic_settings import TOPIC_SETTINGS, ConfigSource
from dataplane.config import Settings
from dataplane.controller.controller import NewTopic, TopicOutcome
from dataplane.handlers.admin.once_named import Asked
from dataplane.handlers.admin.topics import _created_topics
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from dataplane.records.steps import run_through

PLAIN = [f"plain-{number}" for number in range(100)]
OVERRIDES = {"retention.ms": "1234"}


def created(hidden=ErrorCode.NONE):
    broker = SimpleNamespace(config=SimpleNamespace(settings=Settings()))
    ctx = SimpleNamespace(broker=broker, topic_refusal=lambda _operation, _topic: hidden)
    names = [*PLAIN, "special", "refused", "denied"]
    codes = {"refused": ErrorCode.INVALID_REQUEST, "denied": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    asked = Asked()
    asked.outcomes = [TopicOutcome(name, codes.get(name, ErrorCode.NONE), None) for name in names]
    asked.wanted = {name: NewTopic(name, 1, 1, None, OVERRIDES if name == "special" else {}) for name in names}
    request = CreateTopicsRequest(topics=tuple(CreatableTopic(name, 1, 1) for name in names))
    topics = run_through(_created_topics(ctx, request, asked))
    return {topic.name: topic for topic in topics}


def test_topics_that_set_nothing_share_their_settings():
    topics = created()
    assert len({id(topics[name].configs) for name in PLAIN}) == 1


def test_each_topic_says_what_it_sets_itself():
    topics = created()
    assert [each.name for each in topics["special"].configs] == list(TOPIC_SETTINGS)
    own = [
        (each.name, each.value)
        for each in topics["special"].configs
        if each.config_source == ConfigSource.DYNAMIC_TOPIC
    ]
    assert own == [("retention.ms", "1234")]
    defaults = {each.name: each.value for each in topics[PLAIN[0]].configs}
    assert defaults == {name: setting.default_of(Settings()) for name, setting in TOPIC_SETTINGS.items()}
    assert {each.config_source for each in topics[PLAIN[0]].configs} == {ConfigSource.DEFAULT}


def test_what_is_refused_has_no_settings():
    assert created()["refused"].configs == ()


def test_that_settings_are_hidden_is_said_as_kafka_says_it():
    """Of a topic that is there now, and of one that the session may not create; of no other failure."""
    hidden = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topics = created(hidden)
    assert (topics["special"].topic_config_error_code, topics["special"].configs) == (hidden, ())
    assert topics["denied"].topic_config_error_code == hidden
    assert topics["refused"].topic_config_error_code == ErrorCode.NONE
