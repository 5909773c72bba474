"""Bugs that the fuzzers must find, put in on request: a fuzzer that has found nothing is believed when it finds these.

    python -m tests.fuzz decoders --planted beyond --minutes 5      exit status 0: it was found

`deltas` was ours until the fuzzer found it; the others take one check away.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace

from dataplane.groups.classic import state
from dataplane.handlers.discovery import metadata
from dataplane.network import proxy_header
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import MetadataRequest, MetadataResponse, MetadataResponseTopic
from dataplane.protocol.source import Source
from dataplane.records import down_conversion
from dataplane.security import scram


def _in_decoders(change: Callable[[str], str]) -> None:
    emit = Source.emit
    Source.emit = lambda source, line: emit(source, change(line))


def text() -> None:
    """A string that is not UTF-8 ends a decoder in another error than its own."""
    _in_decoders(lambda line: line.replace("UnicodeDecodeError, ", ""))


def beyond() -> None:
    """A string may end after its message."""
    _in_decoders(lambda line: "" if "a string ends after the message" in line else line)


def deltas() -> None:
    """Records whose timestamps lie beyond 64 bits are converted down."""
    down_conversion.struct = SimpleNamespace(error=())


def strangers() -> None:
    """SyncGroup believes whoever speaks for a member."""
    state._sync_problem = lambda *_: ErrorCode.NONE


def nameless() -> None:
    """An answer of Metadata has a topic without a name in a version that has no null for it."""

    def refused(_: object, request: MetadataRequest) -> MetadataResponse:
        return MetadataResponse(topics=tuple(MetadataResponseTopic(42, t.name, t.topic_id) for t in request.topics))

    metadata._refused = refused


def zeros() -> None:
    """A port may have zeros in front."""
    proxy_header._PORT = re.compile(rb"[0-9]{1,99}")


def short() -> None:
    """A header of version 2 may end within its addresses."""
    proxy_header._ADDRESSES = dict.fromkeys(proxy_header._ADDRESSES, 0)


def nonces() -> None:
    """Whatever nonce and channel binding stand in a final message of SCRAM are right (CVE-2024-56128)."""
    scram.hmac = SimpleNamespace(compare_digest=lambda *_: True)


def behalf() -> None:
    """SCRAM overlooks that a client wants to be somebody else."""
    pattern = scram._FIRST.pattern
    scram._FIRST = re.compile(pattern.replace(r"(?P<authzid>[^,\0]+)", r"[^,\0]+(?P<authzid>(?!))?"))


PLANTED: dict[str, tuple[Callable[[], None], ...]] = {
    "decoders": (text, beyond, deltas),
    "connection": (nameless, strangers),
    "proxy": (zeros, short),
    "sasl": (nonces, behalf),
}


def names(target: str) -> list[str]:
    """Of the bugs for a fuzzer."""
    return [plant.__name__ for plant in PLANTED[target]]


def take(arguments: list[str]) -> None:
    """Put in the bug that `--planted=NAME` among the arguments names, and take that out, which libFuzzer does not know."""
    for argument in [each for each in arguments if each.startswith("--planted=")]:
        arguments.remove(argument)
        globals()[argument.partition("=")[2]]()
