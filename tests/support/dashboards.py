"""Our Grafana dashboards, as far as a test can look at them: what they ask Prometheus for, and whether anybody tells that."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "grafana"
SERIES = re.compile(r"\b(sluice_[a-z0-9_]+)(?:\{([^}]*)\})?")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
SHOWN = re.compile(r"\{\{(\w+)\}\}")
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? \S+$")


def dashboard(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def told(text: str) -> dict[str, set[str]]:
    """The labels of each series of an exposition."""
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        match = SAMPLE.fullmatch(line)
        if match and not line.startswith("#"):
            found.setdefault(match[1], set()).update(re.findall(r'(\w+)="', match[2] or ""))
    return found


def asked(board: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(title of the panel, query, legend)."""
    return [
        (panel["title"], each["expr"], each["legendFormat"]) for panel in board["panels"] for each in panel["targets"]
    ]


def problems(board: dict[str, Any], text: str) -> list[str]:
    """What is asked of `text`, an exposition, and not in it: series, labels to choose or to group by, labels in legends."""
    found = []
    known = told(text)
    for title, query, legend in asked(board):
        named = SERIES.findall(query)
        if not named:
            found.append(f"{title}: no series in {query}")
        labels: set[str] = set()
        for name, chosen in named:
            labels |= known.get(name, set())
            found += [f"{title}: {name} is not told"] if name not in known else []
            wanted = set(re.findall(r'(\w+)\s*(?:=|!=|=~|!~)\s*"', chosen))
            found += [f"{title}: {name} has no label {label}" for label in sorted(wanted - known.get(name, set()))]
        grouped = {label.strip() for labels_of in GROUPED.findall(query) for label in labels_of.split(",")}
        found += [f"{title}: grouped by {label}" for label in sorted(grouped - labels)]
        left = grouped or labels
        found += [f"{title}: {label} in the legend" for label in sorted(set(SHOWN.findall(legend)) - left)]
    return found


def unused(board: dict[str, Any], text: str) -> set[str]:
    """Series that are told and on no panel."""
    return set(told(text)) - {name for _, query, _ in asked(board) for name, _ in SERIES.findall(query)}


def overlaps(board: dict[str, Any]) -> list[tuple[str, str]]:
    """Panels that lie on each other."""
    return [
        (one["title"], other["title"])
        for one, other in combinations(board["panels"], 2)
        if _meet(one["gridPos"], other["gridPos"], "x", "w") and _meet(one["gridPos"], other["gridPos"], "y", "h")
    ]


def _meet(one: dict[str, int], other: dict[str, int], start: str, length: str) -> bool:
    return one[start] < other[start] + other[length] and other[start] < one[start] + one[length]


def shape_problems(board: dict[str, Any]) -> list[str]:
    """What Grafana would not take, or people would miss."""
    found = []
    ids = [panel["id"] for panel in board["panels"]]
    if len(set(ids)) != len(ids):
        found.append("two panels have one id")
    for panel in board["panels"]:
        references = [each["refId"] for each in panel["targets"]]
        if not panel["description"] or not panel["fieldConfig"]["defaults"]["unit"] or not references:
            found.append(f"{panel['title']}: no description, unit or query")
        if len(set(references)) != len(references):
            found.append(f"{panel['title']}: two queries have one name")
        if panel["gridPos"]["x"] + panel["gridPos"]["w"] > 24:
            found.append(f"{panel['title']}: wider than the page")
    return found
