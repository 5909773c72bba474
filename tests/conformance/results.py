"""What a suite found, what was to be expected, and what of the difference counts.

expected/<suite>.tsv     test, result: what Apache Kafka 3.9.2 scores in the same set-up
expected/refused.tsv     suite, door, test, reason: what a tenant's listener refuses on purpose ("*" stands for any)
expected/later.tsv       suite, door, test, reason: what needs a part of Kafka that is not built yet

A test that Apache Kafka passes and that does not pass here is a failure unless one of the two lists names it; a listed
one that passes is said too, so that the lists do not outlive their reasons.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPECTED = Path(__file__).parent / "expected"


@dataclass(frozen=True)
class Result:
    """Of one test: pass, fail, skip, timeout, or missing (it was to be run and said nothing)."""

    test: str
    outcome: str
    seconds: float = 0.0
    remark: str = ""


@dataclass(frozen=True)
class Row:
    """A result beside Apache Kafka's. `verdict`: as apache, better, FAILS, refused, later, listed but passes."""

    suite: str
    door: str
    test: str
    apache: str
    ours: str
    seconds: float
    verdict: str
    remark: str

    @property
    def is_failure(self) -> bool:
        return self.verdict == "FAILS"


def read_tsv(path: Path) -> list[list[str]]:
    """The rows; lines that begin with # are comments."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def expected(suite: str) -> dict[str, str]:
    """By test, in the order of the file."""
    return {row[0]: row[1] for row in read_tsv(EXPECTED / f"{suite}.tsv")}


def compare(suite: str, door: str, results: list[Result], *, whole: bool = True) -> list[Row]:
    """A row for each test that ran, and, of a whole suite, for each that should have."""
    apache = expected(suite)
    found = {result.test: result for result in results}
    rows = []
    for test in dict.fromkeys((*apache, *found)) if whole else found:
        result = found.get(test, Result(test, "missing"))
        theirs = apache.get(test, "unknown")
        verdict, reason = _verdict(suite, door, test, theirs, result.outcome)
        rows.append(Row(suite, door, test, theirs, result.outcome, result.seconds, verdict, reason or result.remark))
    return rows


def _verdict(suite: str, door: str, test: str, apache: str, ours: str) -> tuple[str, str]:
    listed = _listed(suite, door, test)
    if ours == apache:
        return ("listed but passes", listed[1]) if listed and ours == "pass" else ("as apache", "")
    if ours == "pass":
        return "better", ""
    if apache not in ("pass", "unknown"):
        return "as apache", ""
    return listed or ("FAILS", "")


def _listed(suite: str, door: str, test: str) -> tuple[str, str] | None:
    for name in ("refused", "later"):
        for its_suite, its_door, its_test, reason in read_tsv(EXPECTED / f"{name}.tsv"):
            if all(map(fnmatchcase, (suite, door, test), (its_suite, its_door, its_test.replace("[", "[[]")))):
                return name, reason
    return None


def table(rows: list[Row]) -> str:
    """Every test in which we and Apache Kafka differ, then a line of counts for each suite and door."""
    lines = ["", f"{'suite':<18}{'door':<10}{'test':<64} {'apache':<9}{'ours':<9}{'s':>6}  verdict"]
    lines += [_line(row) for row in rows if row.ours != row.apache or row.verdict != "as apache"]
    lines += ["", f"{'suite':<18}{'door':<10}{'apache passes':>14}{'ours of them':>14}{'listed':>8}{'FAILS':>7}"]
    for (suite, door), count in summary(rows).items():
        lines.append(
            f"{suite:<18}{door:<10}{count['apache']:>14}{count['ours']:>14}{count['listed']:>8}{count['fails']:>7}"
        )
    return "\n".join(lines)


def _line(row: Row) -> str:
    remark = f": {row.remark.splitlines()[0][:90]}" if row.remark else ""
    figures = f"{row.apache:<9}{row.ours:<9}{row.seconds:>6.1f}"
    return f"{row.suite:<18}{row.door:<10}{row.test:<64} {figures}  {row.verdict}{remark}"


def summary(rows: list[Row]) -> dict[tuple[str, str], dict[str, int]]:
    """Counts by (suite, door)."""
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for row in rows:
        count = counts.setdefault((row.suite, row.door), {"apache": 0, "ours": 0, "listed": 0, "fails": 0})
        count["apache"] += row.apache == "pass"
        count["ours"] += row.apache == "pass" and row.ours == "pass"
        count["listed"] += row.verdict in ("refused", "later")
        count["fails"] += row.is_failure
    return counts


def kept(before: Mapping[str, Any], rows: list[Row]) -> list[Row]:
    """Of an earlier report: the suites and doors that were not run again."""
    again = {(row.suite, row.door) for row in rows}
    return [Row(**test) for test in before.get("tests", ()) if (test["suite"], test["door"]) not in again]


def report(rows: list[Row]) -> dict[str, Any]:
    """The document of var/reports/conformance.json: counts, what Apache Kafka passes and we do not, and all tests."""
    missed = [row for row in rows if row.apache == "pass" and row.ours != "pass"]
    return {
        "summary": [{"suite": suite, "door": door, **count} for (suite, door), count in summary(rows).items()],
        "apache_passes_and_we_do_not": [
            {"suite": row.suite, "door": row.door, "test": row.test, "verdict": row.verdict, "reason": row.remark}
            for row in missed
        ],
        "tests": [asdict(row) for row in rows],
    }
