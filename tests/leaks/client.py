"""One side's connections: a request to each broker, and what became of it.

Behind every request goes an ApiVersions (*probe*) on the same connection. Its answer says that the connection lives, and that a
request without an answer (Produce with acks=0) has none. All connections say the same client id and the same correlation ids,
so that answers can be compared as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from dataplane.protocol.api import APIS, Api, ApiKey
from dataplane.protocol.headers import decode_response, encode_request
from dataplane.protocol.messages.discovery import ApiVersionsRequest, MetadataRequest
from dataplane.protocol.schema import message_info

Address = tuple[str, int]
REQUEST, PROBE = 1, 2
"""Correlation ids."""
_PAUSE_S = 0.1


class Line(Protocol):
    """One connection."""

    def send(self, data: bytes) -> None: ...

    def frame(self) -> bytes | None:
        """The next frame, without its size; None: the broker has closed it. Raises TimeoutError."""

    def close(self) -> None: ...


class Network(Protocol):
    """How addresses are reached."""

    def open(self, address: Address, *, apart: bool) -> Line:
        """`apart`: from another address than usual, where the machine has several."""

    def pause(self, seconds: float) -> None: ...

    def now(self) -> float:
        """Seconds since some moment."""


@dataclass(frozen=True)
class Told:
    """What became of a request: its answer, if there was one, and the state of the connection behind it."""

    answer: bytes | None
    connection: str = "open"

    @property
    def in_words(self) -> str:
        """For people, where it cannot be decoded."""
        return f"{'no answer' if self.answer is None else self.answer.hex()}, connection {self.connection}"


@dataclass
class Client:
    """One side, by its bootstrap address."""

    network: Network
    bootstrap: Address
    client_id: str = "leaks"
    apart: bool = False
    brokers: dict[int, Address] = field(default_factory=dict)
    controller: int = -1
    _lines: dict[int, Line] = field(default_factory=dict)

    def look(self) -> None:
        """Learn the brokers, as clients do."""
        self.brokers, line = {0: self.bootstrap}, self._lines.pop(0, None)
        if line is not None:
            line.close()
        answer = self.call(0, MetadataRequest(topics=()), 1)
        self.close()
        self.brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        self.controller = answer.controller_id

    def ask(self, broker: int, request: Any, version: int) -> Told:
        """Send it, and see."""
        api = api_of(request)
        sent = encode_request(api, version, REQUEST, self.client_id, request)
        probe = encode_request(APIS[ApiKey.API_VERSIONS], 0, PROBE, self.client_id, ApiVersionsRequest())
        line = self._line(broker)
        try:
            line.send(sent + probe)
            first = line.frame()
            if first is not None and _correlation_id(first) == PROBE:
                return Told(None)
            second = None if first is None else line.frame()
        except TimeoutError:
            self._drop(broker)
            return Told(None, "silent")
        if second is None:
            self._drop(broker)
        return Told(first, "closed" if second is None else "open")

    def call(self, broker: int, request: Any, version: int) -> Any:
        """The decoded answer of a request that has to have one."""
        told = self.ask(broker, request, version)
        assert told.answer is not None, f"{type(request).__name__} to broker {broker}: {told.in_words}"
        return decode_response(api_of(request), version, told.answer)[1]

    def wait(self, condition: Callable[[], Any], what: str, within_s: float = 60.0) -> Any:
        """Ask until the answer is true, and return it. Raises TimeoutError."""
        end = self.network.now() + within_s
        while not (found := condition()):
            if self.network.now() > end:
                raise TimeoutError(f"no {what} within {within_s} s")
            self.network.pause(_PAUSE_S)
        return found

    def close(self) -> None:
        """All connections; the next request opens another."""
        for broker in list(self._lines):
            self._drop(broker)

    def _line(self, broker: int) -> Line:
        if broker not in self._lines:
            self._lines[broker] = self.network.open(self.brokers[broker], apart=self.apart)
        return self._lines[broker]

    def _drop(self, broker: int) -> None:
        self._lines.pop(broker).close()


def api_of(request: Any) -> Api:
    """The declarations of a request's API."""
    key = message_info(type(request)).api_key
    assert key is not None
    return APIS[key]


def _correlation_id(frame: bytes) -> int:
    return int.from_bytes(frame[:4])
