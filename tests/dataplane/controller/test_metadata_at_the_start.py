"""A broker that nobody has told anything yet does not answer Metadata as if that were the truth."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dataplane.cluster.metadata import Metadata
from dataplane.handlers.context import RequestContext
from dataplane.handlers.discovery.metadata import handle_metadata
from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.control import UpdateMetadataRequest
from dataplane.protocol.messages.discovery import MetadataRequest, MetadataResponse
from dataplane.tasks import Task
from dataplane.tenancy.session import Session
from quota.contracts.identity import ANYBODY
from quota.contracts.namespace import ClusterNames
from tests.simulation.virtual_time import VirtualTime
from tests.support.answering import SlicesAtOnce, answer_of


def _ask(time: VirtualTime, metadata: Metadata) -> Any:
    broker: Any = SimpleNamespace(metadata=metadata, doors=SimpleNamespace(loop=time), slices=SlicesAtOnce())
    session = Session(None, "internal", ClusterNames(), "127.0.0.1", authenticated=True, identity=ANYBODY)
    ctx = RequestContext(broker, session, ApiKey.METADATA, 9, 1, None, 0)
    return answer_of(handle_metadata(ctx, MetadataRequest()))


def test_the_answer_waits_for_the_controllers_first_word() -> None:
    time, metadata = VirtualTime(), Metadata()
    answer: Task[MetadataResponse] = _ask(time, metadata)
    time.run(1)
    assert not answer.done
    metadata.apply(UpdateMetadataRequest(controller_id=3, controller_epoch=1))
    assert answer.result().controller_id == 3
    assert isinstance(_ask(time, metadata), MetadataResponse)  # from then on at once


def test_without_any_controller_it_is_given_after_a_while() -> None:
    time = VirtualTime()
    answer: Task[MetadataResponse] = _ask(time, Metadata())
    assert time.wait(answer).controller_id == -1
    assert time.monotonic() == 10
