"""What stands between the provider and the site: one request at a time, and whatever a test wants to go wrong on the way.

One at a time, because the site and the test share one connection to the database; the provider's own calls are as parallel as
they are.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests

PASSED_ON = ("Authorization", "Content-Type", "Accept", "Idempotency-Key", "User-Agent")
PASSED_BACK = ("Content-Type", "Retry-After", "Idempotency-Replayed")


@dataclass(frozen=True)
class Asked:
    """A request that the provider made. `answered`: what the site said; None where it was not passed on."""

    method: str
    path: str
    key: str | None
    body: str
    answered: int | None
    replayed: bool = False

    @property
    def is_change(self):
        return self.method != "GET"


@dataclass
class Fault:
    """For the next `times` requests of this method and end of an address."""

    method: str
    ending: str
    kind: str  # "lose": carried out, and the answer never comes; or a status, with `retry_after`
    times: int = 1
    retry_after: str = "0"

    def takes(self, method, path):
        return self.times > 0 and method == self.method and path.partition("?")[0].endswith(self.ending)


@dataclass
class Between:
    """The address for the provider, and what went through."""

    site: str
    lock: threading.RLock = field(default_factory=threading.RLock)
    asked: list[Asked] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    most_at_once: int = 0
    _now: int = 0
    _count: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self):
        between = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_arguments):
                pass

            def _any(self):
                between._handle(self)

        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            setattr(Handler, f"do_{method}", Handler._any)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_error):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def changes(self, method=None):
        return [each for each in self.asked if each.is_change and method in (None, each.method)]

    def _handle(self, handler):
        with self._count:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            self._answer(handler)
        finally:
            with self._count:
                self._now -= 1

    def _answer(self, handler):
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length)
        headers = {name: handler.headers[name] for name in PASSED_ON if handler.headers[name]}
        key = handler.headers["Idempotency-Key"]
        with self.lock:
            fault = next((each for each in self.faults if each.takes(handler.command, handler.path)), None)
            if fault is not None:
                fault.times -= 1
            if fault is not None and fault.kind != "lose":
                self.asked.append(Asked(handler.command, handler.path, key, body.decode(), None))
                problem = (
                    b'{"title": "Wait", "status": %d, "code": "too_many_requests", "detail": "", "retriable": true}'
                )
                document = problem % int(fault.kind)
                kept = {"Content-Type": "application/problem+json", "Retry-After": fault.retry_after}
                _send(handler, int(fault.kind), kept, document)
                return
            answer = requests.request(
                handler.command, self.site + handler.path, data=body, headers=headers, timeout=60, allow_redirects=False
            )
            replayed = answer.headers.get("Idempotency-Replayed") == "true"
            self.asked.append(Asked(handler.command, handler.path, key, body.decode(), answer.status_code, replayed))
        if fault is not None:
            handler.close_connection = True
            handler.connection.close()
            return
        kept = {name: answer.headers[name] for name in PASSED_BACK if name in answer.headers}
        _send(handler, answer.status_code, kept, answer.content)


def _send(handler, status, headers, content):
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    if status != 204:
        handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    if status != 204:
        handler.wfile.write(content)
