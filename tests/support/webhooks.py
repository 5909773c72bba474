"""A receiver of webhooks on loopback. `taken` has path, headers and body of every request, the refused ones too."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Taken:
    """One request."""

    path: str
    headers: Mapping[str, str]  # by names in small letters
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class WebhookServer:
    """``with WebhookServer() as server: … server.url``. Answers `status`, or the statuses in `answers` first, one each."""

    def __init__(self) -> None:
        self.status, self.answers, self.headers = 204, [], {}
        self.taken: list[Taken] = []
        self.drips = threading.Event()  # set: a header now and then, without an end
        self._ends = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.taken.append(Taken(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                try:
                    self.send_response(receiver.answers.pop(0) if receiver.answers else receiver.status)
                    for name, value in receiver.headers.items():
                        self.send_header(name, value)
                    while receiver.drips.is_set() and not receiver._ends.wait(0.02):
                        self.wfile.write(b"X: y\r\n")
                    self.end_headers()
                except OSError:
                    return

            def log_message(self, *_arguments: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/alarms?to=me"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ends.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
