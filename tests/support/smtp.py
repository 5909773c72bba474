"""A mail server on loopback that takes what it is given, one message after another; `mails` has them, parsed."""

from __future__ import annotations

import email
import email.policy
import socketserver
import threading
from dataclasses import replace
from email.message import EmailMessage
from typing import Any, Self


class _Session(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self._say("220 here")
        while line := self.rfile.readline():
            word = line.strip().upper()
            if word.startswith(b"DATA"):
                self._say("354 go on")
                lines = iter(self.rfile.readline, b".\r\n")
                self._take(b"".join(each.removeprefix(b".") for each in lines))
            elif word.startswith(b"RCPT") and self.server.refuses:
                self._say("550 nobody of this name")
            elif word.startswith(b"QUIT"):
                self._say("221 bye")
                return
            else:
                self._say("250 fine")

    def _take(self, data: bytes) -> None:
        if self.server.busy > 0:
            self.server.busy -= 1
            self._say("451 later")
            return
        self.server.mails.append(email.message_from_bytes(data, policy=email.policy.default))
        self._say("250 taken")

    def _say(self, text: str) -> None:
        self.wfile.write(text.encode() + b"\r\n")


class MailServer(socketserver.ThreadingTCPServer):
    """``with MailServer() as server: … server.mails``. `refuses`: every address; `busy`: so many messages are put off."""

    daemon_threads = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.mails: list[EmailMessage] = []
        self.refuses, self.busy = False, 0
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def port(self) -> int:
        return self.server_address[1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


def mailing_by(settings: Any, server: MailServer, *, sender: str, **also: Any) -> None:
    """An installation that sends by this server; `also`: more of its environment."""
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, smtp=f"127.0.0.1:{server.port}", email_from=sender, **also)
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_USE_TLS = "127.0.0.1", server.port, False
    settings.DEFAULT_FROM_EMAIL = sender
