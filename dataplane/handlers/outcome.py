"""What a handler may reply: an answer now, one later, or the end of the connection.

==================  ================================================================================================
`Now`               a message of the API, or a frame that is `Encoded` already
a future            the same when it is done; one that is a `tasks.Later` also says what to do when the client has
                    gone, and whether to read on meanwhile
a coroutine         (``async def``) run as a task: for what waits for ZooKeeper or other brokers
`records.steps`     for what may be long, of any of these. They pause after 50 to 100 microseconds of work. Between two
                    pauses other requests are served: what a handler in steps reads is true of each element by itself,
                    not of all of them at one moment, and it asks for each element anew whether the session may see or
                    change it
==================  ================================================================================================

The last three are `Reply` and not `Now`: `requests.dispatch` sees which it is by its type, and asks nothing else of it.
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import Field, dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

from dataplane.protocol.primitives import Buffer, Splice
from dataplane.records.steps import Steps
from dataplane.tasks import Future


class Message(Protocol):
    """A response of `protocol.messages`: a dataclass that the codecs know."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


@dataclass(frozen=True, slots=True)
class Encoded:
    """A whole frame, as it goes out; `told_ms` is what it tells its reader to wait."""

    parts: list[Buffer | Splice]
    told_ms: int = 0


Now: TypeAlias = Message | Encoded
"""What goes out."""
Outcome: TypeAlias = Now | Future[Any] | Coroutine[Any, Any, Now]
"""What steps end with. A future is of `Now`."""
Reply: TypeAlias = Outcome | Steps[Outcome]
"""See the file's text."""


class CloseConnectionError(Exception):
    """The connection has to end: Kafka's way to say what an answer has no room for."""
