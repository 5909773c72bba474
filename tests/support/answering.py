"""What becomes of a handler's reply, where there is no connection: steps are made at once, one after the other."""

from __future__ import annotations

from types import GeneratorType
from typing import TYPE_CHECKING, Any

from dataplane.records.steps import run_through
from dataplane.tasks import Future, Task

if TYPE_CHECKING:
    from dataplane.records.steps import Steps


class SlicesAtOnce:
    """As much of `dataplane.slices` as handlers use, for tests of what they answer."""

    def run(self, _owner: str, steps: Steps[Any], **_how: bool) -> Future[Any]:
        """Done when it returns."""
        future: Future[Any] = Future()
        try:
            future.resolve(run_through(steps))
        except Exception as error:  # noqa: BLE001 - the future carries it
            future.fail(error)
        return future


def answer_of(reply: Any) -> Any:
    """A message, or the future of one."""
    if isinstance(reply, GeneratorType):
        reply = run_through(reply)
    return Task(reply) if hasattr(reply, "send") else reply
