"""One cell of the matrix: a client's program is run on a row, and what it says is held against what the brokers have."""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.clients.checks import (
    CHECKS,
    DENIED,
    EXCHANGE,
    REAUTHENTICATION,
    SLACK_S,
    STRANGER,
    Answer,
    Finding,
    Job,
    jobs,
    problem_of,
    problem_of_keys,
    problem_of_log,
)
from tests.conformance.process import run_lines

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.clients import Client
    from tests.clients.instance import Served
    from tests.clients.rows import Row

LOGINS_AGAIN = 2
"""On each broker, at least."""
AUDIT_WITHIN_S = 10.0
_MOST_WORDS = 400
_numbers = itertools.count(1)


@dataclass
class Cell:
    """A client on a row, with a finding for each check."""

    client: str
    version: str
    row: str
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_failure(self) -> bool:
        return any(finding.outcome == "fail" for finding in self.findings)


@dataclass
class _Said:
    """What a program has said, and when it lived, by the wall's clock."""

    answers: dict[str, Answer]
    lived_ms: range = range(0)


def run_cell(
    client: Client, row: Row, served: Served, *, lifetime_ms: int, log: Path, wanted: tuple[str, ...] = CHECKS
) -> Cell:
    """A broker setting `connections.max.reauth.ms` of `lifetime_ms` is needed where re-authentication is wanted."""
    cell = Cell(client.name, client.version, row.name)
    if row.mechanism in client.lacks:
        cell.findings = [Finding(check, "not supported", problems=[client.lacks[row.mechanism]]) for check in wanted]
        return cell
    number = next(_numbers)
    asked = jobs(row, number=number, lifetime_ms=lifetime_ms, wanted=wanted)
    for topic in {job.topic for job in asked if job.topic.startswith("orders-")}:
        served.make_topic(topic)
    of_steady = [job for job in asked if job.check == REAUTHENTICATION]
    said = _run(client, row, served, [job for job in asked if job.check != REAUTHENTICATION], log, lifetime_ms)
    if of_steady:
        # In a process of its own: what connects and logs in while it lives is of this job, and all of it.
        steady = _run(client, row, served, of_steady, log.with_stem(f"{log.stem}-steady"), lifetime_ms)
        said = _Said({**said.answers, **steady.answers}, steady.lived_ms)
    for check in (EXCHANGE, REAUTHENTICATION, DENIED, STRANGER):
        of_check = [job for job in asked if job.check == check]
        if of_check:
            cell.findings.append(_finding(check, of_check, said, served, client, row))
    return cell


def _run(client: Client, row: Row, served: Served, asked: list[Job], log: Path, lifetime_ms: int) -> _Said:
    said = _Said({})
    began_ms = before_ms = _now_ms()

    def on_line(line: str) -> None:
        nonlocal before_ms
        if not line.startswith('{"name"'):
            return
        document = json.loads(line)
        since_ms, before_ms = before_ms, _now_ms()
        said.answers[document["name"]] = Answer.from_document(document, (before_ms - since_ms) / 1000)

    lines = [json.dumps(_document(job, served.access(row, job.access), lifetime_ms)) + "\n" for job in asked]
    limit_s = sum(job.limit_s for job in asked) + SLACK_S
    run_lines(
        client.command(),
        limit_s=limit_s,
        log=log,
        folder=client.folder,
        environment=client.environment,
        on_line=on_line,
        stdin="".join(lines),
    )
    said.lived_ms = range(began_ms, _now_ms() + 1)
    return said


def _document(job: Job, access: dict[str, str], lifetime_ms: int) -> dict[str, Any]:
    return {
        "name": job.name,
        "do": job.do,
        **access,
        "topic": job.topic,
        "group": job.group,
        "records": job.records,
        "seconds": job.seconds,
        "limit_s": job.limit_s,
        "lifetime_ms": lifetime_ms,
    }


def _now_ms() -> int:
    return round(time.time() * 1000)


def _finding(check: str, of_check: list[Job], said: _Said, served: Served, client: Client, row: Row) -> Finding:
    finding = Finding(check)
    for job in of_check:
        answer = said.answers.get(job.name)
        is_vague = not client.vague.keys().isdisjoint({job.name, f"{job.name} by {row.mechanism}"})
        problem = problem_of(job, answer, is_vague=is_vague)
        if problem is not None:
            finding.blame(problem)
        if answer is None:
            continue
        finding.seconds = round(finding.seconds + answer.seconds, 1)
        if answer.words:
            finding.words[job.name] = f"{answer.seconds:.1f} s: {answer.words[:_MOST_WORDS]}"
        if problem is None and check in _IN_THE_LOG:
            for found in _IN_THE_LOG[check](job, answer, served):
                finding.blame(found)
    if check == REAUTHENTICATION and finding.outcome == "pass":
        _judge_logins(finding, said, served, client, row)
    return finding


def _exchanged(job: Job, answer: Answer, served: Served) -> list[str]:
    log = served.log(job.topic)
    committed = served.committed(job.group, job.topic)
    problems = [
        problem_of_log([value for records in log.values() for _, value in records], answer.sent),
        problem_of_keys(log),
        None if committed == answer.sent else f"the group has committed {committed} of {answer.sent} records",
    ]
    return [problem for problem in problems if problem is not None]


def _steady(job: Job, answer: Answer, served: Served) -> list[str]:
    values = [value for records in served.log(job.topic).values() for _, value in records]
    problem = problem_of_log(values, answer.sent)
    return [] if problem is None else [problem]


_IN_THE_LOG = {EXCHANGE: _exchanged, REAUTHENTICATION: _steady}


def _judge_logins(finding: Finding, said: _Said, served: Served, client: Client, row: Row) -> None:
    """Whether it has logged in again where it was connected. A client that never does may be known for that."""
    known = client.lacks.get(REAUTHENTICATION)
    wanted = LOGINS_AGAIN if known is None else 1
    again = served.logins_again(row, said.lived_ms, wanted, AUDIT_WITHIN_S)
    finding.words["logins on open connections, by broker"] = ", ".join(f"{b}: {n}" for b, n in sorted(again.items()))
    if known is None and min(again.values()) < wanted:
        finding.blame(f"it has logged in again on open connections {again} times, by broker, not {wanted} on each")
    elif known is not None and max(again.values()) < 1:
        finding.outcome = "not supported"
        finding.problems.append(known)
    elif known is not None:
        finding.blame(f"it logs in again, which `clients` says that it does not: {known}")
