"""What counts as a pass in the matrix of clients: said in the client's words, and held against the log and the logins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.clients.cells import Cell
from tests.clients.checks import (
    CHECKS,
    DENIED,
    EXCHANGE,
    LIMIT_S,
    REAUTHENTICATION,
    RECORDS,
    SLACK_S,
    STRANGER,
    Answer,
    Finding,
    jobs,
    problem_of,
    problem_of_keys,
    problem_of_log,
)
from tests.clients.clients import CLIENTS
from tests.clients.report import outcome_of, report, table
from tests.clients.rows import MECHANISMS, ROWS

BY_NAME = {row.name: row for row in ROWS}
GOOD = Answer(True, "", 1.0, RECORDS, RECORDS, RECORDS)


def asked(row: str, wanted: tuple[str, ...] = CHECKS):
    return {job.name: job for job in jobs(BY_NAME[row], number=1, lifetime_ms=5_000, wanted=wanted)}


def test_every_security_and_mechanism_has_a_row():
    assert {row.security for row in ROWS} == {"plaintext", "sasl_plaintext", "ssl", "sasl_ssl"}
    for security in ("sasl_plaintext", "sasl_ssl"):
        assert tuple(row.mechanism for row in ROWS if row.security == security) == MECHANISMS
    assert [row.name for row in ROWS if row.shows_certificate] == ["mtls"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_row_is_asked_what_it_can_be_asked(row):
    checks = {job.check for job in asked(row.name).values()}
    assert {EXCHANGE, DENIED} <= checks
    assert (REAUTHENTICATION in checks) == row.wants_sasl
    assert (STRANGER in checks) == (row.wants_sasl or row.wants_tls)


def test_only_what_is_wanted_is_asked():
    assert {job.check for job in asked("sasl_ssl PLAIN", (DENIED,)).values()} == {DENIED}


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("a topic without a right", "KafkaError{code=TOPIC_AUTHORIZATION_FAILED,val=29}"),
        ("a topic without a right", "TopicAuthorizationFailedError: [Error 29] TopicAuthorizationFailedError"),
        ("a topic to read only", "TopicAuthorizationException: Not authorized to access topics: [archive]"),
        ("a topic to read only", "kafka server: The client is not authorized to access this topic"),
        ("a group without a right", "GroupAuthorizationException: Not authorized to access group: theirs"),
        ("a wrong password", "SASL authentication error: Authentication failed during authentication due to invalid"),
        ("a server of another CA", "tls: failed to verify certificate: x509: certificate signed by unknown authority"),
    ],
)
def test_the_right_error_in_a_clients_own_words(job, words):
    assert problem_of(asked("sasl_ssl PLAIN")[job], Answer(False, words, 1.0)) is None


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("a topic without a right", "UnknownTopicOrPartitionError"),
        ("a topic without a right", "GroupAuthorizationFailedError"),
        ("a group without a right", "Not authorized to access topics: [orders-1]"),
        ("a wrong password", "Connection reset by peer"),
        ("a server of another CA", "Local: Broker transport failure"),
        ("a wrong password", "nothing has been said"),
    ],
)
def test_another_error_is_a_failure(job, words):
    assert problem_of(asked("sasl_ssl PLAIN")[job], Answer(False, words, 1.0)) is not None


def test_who_was_to_be_refused_and_was_not_is_a_failure():
    assert "let in" in (problem_of(asked("mtls")["no certificate"], Answer(True, "", 1.0, sent=1)) or "")


def test_a_job_that_has_not_ended_or_took_too_long_is_a_failure():
    job = asked("ssl")["a topic without a right"]
    refused = Answer(False, "TOPIC_AUTHORIZATION_FAILED", 1.0)
    assert problem_of(job, refused) is None
    assert problem_of(job, None) is not None
    assert problem_of(job, replace(refused, seconds=LIMIT_S + SLACK_S + 1)) is not None


def test_a_client_that_is_known_to_be_vague_has_to_be_refused_in_time_all_the_same():
    job = asked("mtls")["no certificate"]
    closed = Answer(False, "Connection closed", 1.0)
    assert problem_of(job, closed) is not None
    assert problem_of(job, closed, is_vague=True) is None
    assert problem_of(job, replace(closed, ok=True), is_vague=True) is not None
    assert problem_of(job, None, is_vague=True) is not None


def test_an_exchange_wants_each_record_once():
    job = asked("plaintext")["exchange"]
    assert problem_of(job, GOOD) is None
    for wrong in ({"sent": 299}, {"received": 301}, {"distinct": 299}, {"ok": False}):
        assert problem_of(job, replace(GOOD, **wrong)) is not None


@pytest.mark.parametrize("values", [[b"v0", b"v2"], [b"v0", b"v1", b"v1"], [b"v0", b"v1", b"v2", b"v2"], []])
def test_a_lost_or_doubled_record_is_seen_in_the_log(values):
    assert problem_of_log(values, 3) is not None


def test_a_log_that_has_each_record_once_is_right_in_any_order_of_partitions():
    assert problem_of_log([b"v2", b"v0", b"v1"], 3) is None


def test_keys_stay_in_their_partition_and_in_order():
    assert problem_of_keys({0: [(b"a", b"v0"), (b"b", b"v1"), (b"a", b"v2")], 1: [(b"c", b"v3")]}) is None
    assert problem_of_keys({0: [(b"a", b"v2"), (b"a", b"v0")]}) is not None
    assert problem_of_keys({0: [(b"a", b"v0")], 1: [(b"a", b"v2")]}) is not None


# --- the report -------------------------------------------------------------------------------------------------------


def cell(client: str = "sarama", row: str = "ssl", version: str = "1", **outcomes: str) -> Cell:
    findings = [
        Finding(check, outcome, problems=["why"] if outcome != "pass" else []) for check, outcome in outcomes.items()
    ]
    return Cell(client, version, row, findings)


def test_a_cell_says_pass_or_what_failed_or_what_is_missing():
    assert outcome_of(cell(exchange="pass", denied="pass")) == "pass"
    assert outcome_of(cell(exchange="pass", denied="fail")) == "FAIL denied"
    assert outcome_of(cell(exchange="pass", reauthentication="not supported")) == "pass, but reauthentication"
    assert outcome_of(cell(exchange="not supported", denied="not supported")) == "not supported"


def test_the_table_has_every_cell_that_was_run_and_every_reason():
    text = table(
        [cell(exchange="pass"), cell("java", exchange="fail")], ["plaintext", "ssl"], {"java": "3", "sarama": "1"}
    )
    (line,) = [line for line in text.splitlines() if line.startswith("ssl")]
    assert line.split() == ["ssl", "FAIL", "pass"]
    assert "java, ssl, exchange: FAIL: why" in text
    assert not any(line.startswith("plaintext") for line in text.splitlines())


def test_cells_that_were_not_run_again_stay_unless_the_client_is_another():
    versions = {"sarama": "1", "java": "3"}
    before = report([cell(exchange="fail"), cell("java", version="2", exchange="pass")], {}, versions)
    after = report([cell(row="mtls", exchange="pass")], before, versions)
    assert after["outcomes"] == {"sarama, ssl": "FAIL exchange", "sarama, mtls": "pass"}
    assert report([cell(exchange="pass")], after, versions)["outcomes"]["sarama, ssl"] == "pass"


def test_every_client_has_a_version_of_its_own():
    assert all(client.version[0].isdigit() for client in CLIENTS.values())
