"""Why a producer of librdkafka began a new epoch: it says so in its log, and nowhere else.

Its words are `Beginning partition drain in state … for PID{Id:1000,Epoch:0} epoch bump for 1 partition(s) with in-flight
requests: …`, and behind that what made it so: a request that failed, with the broker's error in words, or something of its
own, as messages that nobody answered in time.
"""

from __future__ import annotations

import logging
import re
import sys

_DRAINS = re.compile(
    r"Beginning partition drain.* PID\{Id:(\d+),Epoch:(\d+)\} (?:epoch bump|reset) for \d+ partition.*?: (.*)"
)
_ERRORS = {
    "OUT_OF_ORDER_SEQUENCE_NUMBER": ("out of order sequence number", "out of sequence", "skipped sequence numbers"),
    "UNKNOWN_PRODUCER_ID": ("unknown producer id", "producer id metadata"),
}
"""As librdkafka puts them into words."""


class Epochs(logging.Handler):
    """Of one producer. What it says goes on to standard error, where people look for it."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[tuple[int, int, str]] = []  # producer id, epoch, the broker's error or ""

    def logger(self, name: str) -> logging.Logger:
        """What the producer is given to speak to."""
        made = logging.Logger(name)  # noqa: LOG001 - of its own: a client has one for each round
        made.addHandler(self)
        return made

    def emit(self, record: logging.LogRecord) -> None:
        """It has said something. Lines of debugging begin as librdkafka's own would."""
        line = record.getMessage()
        print(f"%7|{line}" if record.levelno <= logging.DEBUG else line, file=sys.stderr, flush=True)
        self.heard(line)

    def heard(self, line: str) -> None:
        """Note the end of an epoch, if it is about one."""
        found = _DRAINS.search(line)
        if found is not None:
            reason = found[3].lower()
            named = [error for error, words in _ERRORS.items() if any(each in reason for each in words)]
            self.ended.append((int(found[1]), int(found[2]), named[0] if named else ""))
