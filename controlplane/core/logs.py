"""What is not worth a line: an idle service ticks a few times a second, and its logs would be nothing else."""

from __future__ import annotations

import logging


class NotEachTick(logging.Filter):
    """Of beat, what it says of every task that it sends; its start and its troubles stay."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.INFO or not str(record.msg).startswith("Scheduler: Sending due task")
