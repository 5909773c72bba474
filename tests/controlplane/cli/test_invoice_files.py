"""Invoices as files: byte for byte into a file, and never onto a terminal."""

from __future__ import annotations

import io

import pytest
from django.http import HttpResponse

from controlplane.billing import api

COMMANDS = ["pdf", "focus"]
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


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_is_written_as_the_service_sends_it(as_alice, served, monkeypatch, command):
    stream = Stream(terminal=False)
    with monkeypatch.context() as here:
        here.setattr("sys.stdout", stream)
        assert as_alice("bill", command, "inv-00000001").status == 0
    assert stream.buffer.getvalue() == command.encode() + BYTES


@pytest.mark.parametrize("command", COMMANDS)
def test_a_terminal_gets_none(as_alice, served, monkeypatch, command):
    stream = Stream(terminal=True)
    with monkeypatch.context() as here:
        here.setattr("sys.stdout", stream)
        ran = as_alice("bill", command, "inv-00000001")
    assert ran.status == 2
    assert "> FILE" in ran.err
    assert stream.buffer.getvalue() == b""


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_not_there_writes_nothing(as_alice, command):
    ran = as_alice("bill", command, "inv-00000009")
    assert (ran.status, ran.out) == (4, "")
