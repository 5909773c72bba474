"""Metadata in the versions that carry a topic's id before it can be asked by: what is refused, and how it is said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from dataplane.cluster.metadata import Metadata
from dataplane.handlers.context import RequestContext
from dataplane.handlers.discovery.metadata import handle_metadata
from dataplane.protocol.api import ApiKey
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import UpdateMetadataRequest
from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic, MetadataResponse
from dataplane.tenancy.session import Session
from quota.contracts.identity import ANYBODY
from quota.contracts.namespace import ClusterNames, InstanceNames, Names
from tests.support.answering import answer_of

ID = UUID(int=7)


@pytest.mark.parametrize("names", [ClusterNames(), InstanceNames("abcdefgh")])
@pytest.mark.parametrize("version", [10, 11])
def test_an_id_before_version_12_fails_the_whole_request(version: int, names: Names) -> None:
    metadata = Metadata()
    metadata.apply(UpdateMetadataRequest(controller_id=3, controller_epoch=1))
    broker: Any = SimpleNamespace(metadata=metadata)
    context = RequestContext(
        broker,
        Session(None, "", names, "127.0.0.1", authenticated=True, identity=ANYBODY),
        ApiKey.METADATA,
        version,
        1,
        None,
        0,
    )
    topics = (MetadataRequestTopic(ID, None), MetadataRequestTopic(name=names.topic_in("orders")))
    answer = answer_of(handle_metadata(context, MetadataRequest(topics=topics)))
    assert isinstance(answer, MetadataResponse)
    seen = decode(MetadataResponse, version, encode(answer, version, names))
    assert [(topic.error_code, topic.name, topic.topic_id.int) for topic in seen.topics] == [
        (ErrorCode.INVALID_REQUEST, "", 7),
        (ErrorCode.INVALID_REQUEST, "orders", 0),
    ]
    assert (seen.brokers, seen.controller_id) == ((), -1)
