"""The program that reads rows of one table for somebody who waits: `python -m controlplane.lake.lookup`.

A process of its own, since the library that reads the table can neither be stopped from Python nor told how much memory it may
take. This process can: it ends by itself when its time is up,
and gets no more memory than MOST_MEMORY_BYTES.

Lines of JSON. On standard input, first which table, then questions until the input ends::

    {"uri": "file:///…", "options": {}, "topic_id": "…", "within_s": 9.0}
    {"partition": 0, "first": 40, "end": 60, "rows": 20, "bytes": 8388608}

and on standard output, first what the table has of the topic, then for each question its rows and how far it came::

    {"spans": {"0": [0, 50]}}
    {"row": [40, 1793000000000, "a2V5", null, [["name", "dmFsdWU="]]]}
    {"upto": 50}

or, in place of any of them, `{"problem": "absent", "says": "…"}` (`rows.NotReadableError`), which is the last line.
"""

from __future__ import annotations

import base64
import json
import resource
import signal
import sys
from collections.abc import Iterator
from typing import Any

from controlplane.lake.errors import LakeError
from controlplane.lake.planning import Span
from controlplane.lake.rows import NotReadableError, Row, Rows

MOST_MEMORY_BYTES = 512 * 2**20
"""Data of the process. The libraries and a small table take some 100 MiB of it."""


def confine(within_s: float) -> None:
    """This process ends when its time is up, also within a call of the library."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = MOST_MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(hard, MOST_MEMORY_BYTES)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, within_s)


def answers(questions: Iterator[str]) -> Iterator[dict[str, Any]]:
    """To the lines that come in."""
    try:
        which = json.loads(next(questions))
        confine(which["within_s"])
        table = Rows(which["uri"], which["options"], which["topic_id"])
        yield {"spans": {str(partition): [span.first, span.end] for partition, span in table.spans().items()}}
        for line in questions:
            asked = json.loads(line)
            found = table.read(asked["partition"], Span(asked["first"], asked["end"]), asked["rows"], asked["bytes"])
            for row in found.rows:
                yield {"row": _members(row)}
            yield {"upto": found.upto}
    except NotReadableError as problem:
        yield {"problem": problem.reason, "says": str(problem)}
    except LakeError as problem:  # a manifest of a newer release
        yield {"problem": "foreign", "says": str(problem)}
    except GeneratorExit:
        raise
    except BaseException as error:  # noqa: BLE001  # a panic of the library is none of Exception's
        yield {"problem": "broken", "says": f"{type(error).__name__}: {error}"}


def _members(row: Row) -> list[Any]:
    headers = [[name, _text(content)] for name, content in row.headers]
    return [row.offset, row.timestamp_ms, _text(row.key), _text(row.value), headers]


def _text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


def main() -> None:
    """Until the input ends."""
    for answer in answers(iter(sys.stdin.readline, "")):
        sys.stdout.write(json.dumps(answer, separators=(",", ":")) + "\n")
        if "row" not in answer:
            sys.stdout.flush()


if __name__ == "__main__":
    main()
