"""Invoices and statements as files: byte for byte into a file, and never onto a terminal."""

from __future__ import annotations

import io

import pytest
from django.http import HttpResponse

from controlplane.billing import api, statement_api

FILES = {
    "pdf": ("pdf", "inv-00000001"),
    "focus": ("focus", "inv-00000001"),
    "pdf of 2026-05": ("statement-pdf", "--month", "2026-05"),
    "focus of 2026-05": ("statement-focus", "--month", "2026-05"),
}
BYTES = bytes(range(256)) + "订单\r\n".encode()


class Stream(io.TextIOWrapper):
    """Standard output, as bytes."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="ascii")
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def served(monkeypatch):
    """Invoices cannot be taken out of the database again, as this socket's tests would have to."""
    monkeypatch.setattr(api, "pdf_answer", lambda *, organisation, number: HttpResponse(b"pdf" + BYTES))
    monkeypatch.setattr(api, "focus_answer", lambda *, organisation, number: HttpResponse(b"focus" + BYTES))
    for kind in ("pdf", "focus"):
        monkeypatch.setattr(
            statement_api,
            f"statement_{kind}_answer",
            lambda *, organisation, month, kind=kind: HttpResponse(f"{kind} of {month}".encode() + BYTES),
        )


@pytest.mark.parametrize("content", FILES)
def test_a_file_is_written_as_the_service_sends_it(as_alice, served, monkeypatch, content):
    stream = Stream(terminal=False)
    with monkeypatch.context() as here:
        here.setattr("sys.stdout", stream)
        assert as_alice("bill", *FILES[content]).status == 0
    assert stream.buffer.getvalue() == content.encode() + BYTES


@pytest.mark.parametrize("words", FILES.values())
def test_a_terminal_gets_none(as_alice, served, monkeypatch, words):
    stream = Stream(terminal=True)
    with monkeypatch.context() as here:
        here.setattr("sys.stdout", stream)
        ran = as_alice("bill", *words)
    assert ran.status == 2
    assert "> FILE" in ran.err
    assert stream.buffer.getvalue() == b""


@pytest.mark.parametrize("command", ["pdf", "focus"])
def test_what_is_not_there_writes_nothing(as_alice, command):
    ran = as_alice("bill", command, "inv-00000009")
    assert (ran.status, ran.out) == (4, "")


def test_a_statement_is_shown_as_the_service_has_it(as_alice, alice):
    shown = as_alice("bill", "statement", "--month", "2026-05", "-o", "json")
    assert (shown.status, shown.json) == (0, alice.api.get("/api/v1/statement?month=2026-05").json())


@pytest.mark.parametrize("words", [("statement",), ("statement-pdf",), ("statement-focus",)])
def test_a_month_that_is_none_is_refused_by_name(as_alice, words):
    ran = as_alice("bill", *words, "--month", "2026-13")
    assert (ran.status != 0, ran.out) == (True, "")
    assert "month" in ran.err
