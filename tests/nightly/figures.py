"""What each part says of itself in var/reports, in the few numbers that a table has room for."""

from __future__ import annotations

from typing import Any

Report = dict[str, Any]


def simulation(report: Report) -> Report:
    """Of `make simulate`."""
    return {
        "first": report["first"],
        "seeds": report["done"],
        "faults": sum(report["faults"].values()),
        "acknowledged": report["acknowledged"],
        "violations": len(report["violations"]),
    }


def crash(report: Report) -> Report:
    """Of `make crash`."""
    return {
        "points": report["crash_points"],
        "opened": report["opened"],
        "broken": len(report["failures"]),
    }


def fuzz(report: Report) -> Report:
    """Of one target of `make fuzz`."""
    return {
        "seconds": report["seconds"],
        "inputs": report["at_the_end"].get("runs", 0),
        "corpus": report["at_the_end"].get("corpus", 0),
        "found": len(report["found"]),
    }


def mutation(report: Report) -> Report:
    """Of `make mutation`."""
    return {
        "mutants": report["mutants"],
        "tried": report["tried"],
        "caught %": report["caught_percent"],
        "new survivors": len(report["new"]),
    }


def chaos(report: Report) -> Report:
    """Of `make chaos`."""
    names = ("rounds", "faults", "acknowledged", "lost", "doubled", "reordered", "other")
    return {name: report["together"][name] for name in names}


def killed(report: Report) -> Report:
    """Of `make killed`."""
    return {name: report["together"][name] for name in ("rounds", "kills", "records", "different")}


def long(report: Report) -> Report:
    """Of `tests.nightly.long_tests`."""
    return {**{name: report[name] for name in ("passed", "skipped")}, "failed": len(report["failed"])}


def conformance(report: Report) -> Report:
    """Of `make conformance`."""
    return {
        "apache passes": sum(row["apache"] for row in report["summary"]),
        "of them ours": sum(row["ours"] for row in report["summary"]),
        "listed": sum(row["listed"] for row in report["summary"]),
        "fails": sum(row["fails"] for row in report["summary"]),
        "problems": len(report["problems"]),
    }


def differential(report: Report) -> Report:
    """Of `make differential`."""
    unlisted = sum(not difference["reason"] for difference in report["differences"])
    return {
        "answers": sum(report["asked"].values()),
        "accepted": len(report["differences"]) - unlisted,
        "unlisted": unlisted,
        "problems": len(report["problems"]),
    }


def leaks(report: Report) -> Report:
    """Of `make leaks`."""
    return {**report["cells"], "answers": report["answers_scanned"], "leaks": len(report["leaks"])}
