"""Asking a handler by itself, through one of the two doors of a broker, in every version that is offered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dataplane.handlers.context import RequestContext
from dataplane.handlers.table import HANDLERS
from dataplane.protocol.codec import decode, encode
from dataplane.tenancy.instance import Instance
from dataplane.tenancy.session import Session
from quota.contracts.identity import ANYBODY
from quota.contracts.instance import Endpoint, InstanceSpec, InstanceState, Limits, Route
from quota.contracts.namespace import ClusterNames
from tests.support.answering import answer_of

PEER = "10.0.1.9"
ROUTE = Route(
    "default",
    {
        1: Endpoint(("0.0.0.0", 9100), ("one.invalid", 19100)),
        2: Endpoint(("0.0.0.0", 9100), ("two.invalid", 19100)),
    },
)
SPEC = InstanceSpec(
    "ins-aaaabbbb",
    1,
    InstanceState.RUNNING,
    Limits(None, None, None, None),
    ("0.0.0.0/0",),
    (ROUTE,),
    topic_whitelists={"closed": ("192.0.2.0/24",)},
)
KEY = "aaaabbbb"
"""Of the instance: its topics are ``aaaabbbb.<name>`` inside."""


def tenant() -> Session:
    instance = Instance(SPEC)
    return Session(instance, "default", instance.names, PEER, authenticated=True)


def internal(*, authenticated: bool = True) -> Session:
    return Session(
        None, "internal", ClusterNames(), PEER, authenticated=authenticated, identity=ANYBODY if authenticated else None
    )


def reply(session: Session, request: Any, version: int, **rooms: Any) -> Any:
    """What the handler of this request replies, called in a broker that has only these rooms."""
    row = next(row for row in HANDLERS.values() if row.api.request is type(request))
    ctx = RequestContext(SimpleNamespace(**rooms), session, row.api.key, version, 1, "client", 0)  # type: ignore[arg-type]
    return answer_of(row.handle(ctx, request))


def asked(session: Session, request: Any, version: int, **rooms: Any) -> Any:
    """The same over the wire: the request as this version can say it, the answer as this version tells it."""
    row = next(row for row in HANDLERS.values() if row.api.request is type(request))
    heard = decode(row.api.request, version, encode(request, version), 0, session.names)
    answer = reply(session, heard, version, **rooms)
    answer = answer.result() if hasattr(answer, "result") else answer
    return decode(row.api.response, version, encode(answer, version, session.names))


def versions(key: int) -> range:
    return range(HANDLERS[key].low, HANDLERS[key].high + 1)
