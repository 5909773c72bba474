"""Why a table is not read, in sentences. Pure; the console has them in its languages."""

from __future__ import annotations

from collections.abc import Mapping

BUSY = "many tables are being read at the moment"
ELSEWHERE = "it is in a place that cannot be read from here"
SILENT = "it does not answer in time"
BROKEN = "it is damaged"
REASONS: Mapping[str, str] = {
    "absent": "it is no longer there",
    "foreign": "what is there now is not a table that a load has made",
    "broken": BROKEN,
    "away": "its store does not answer",
    "not_installed": "this installation has no reader of tables",
}
"""By what `lake.rows` says."""


class TableProblem(Exception):  # noqa: N818  # it is told as a sentence, in an answer about something else
    """A table that is not read now; `is_passing`: it may be read in a while."""

    def __init__(self, load_id: str, sentence: str, *, is_passing: bool = False) -> None:
        super().__init__(sentence)
        self.load_id, self.sentence, self.is_passing = load_id, sentence, is_passing


def beside(said: str, load: str, because: str) -> str:
    """What is said without a table, and why there is none."""
    return f"{said}; the table of {load} may have what has expired, but cannot be read: {because}"
