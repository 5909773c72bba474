"""An issuer with a server of its own on loopback, which the installation allows."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.tokens import Issuer


class KeyServer:
    """Answers what it is told to: `document` as JSON with `status`, or `data` as it is; `asked` has the paths."""

    def __init__(self) -> None:
        self.status, self.document, self.data, self.headers = 200, {"keys": []}, None, {}
        self.asked: list[tuple[str, str]] = []
        self.drips = threading.Event()  # set: a byte now and then, without an end
        self.ends = threading.Event()
        keys = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                keys.asked.append((self.path, self.headers["Host"]))
                body = keys.data if keys.data is not None else json.dumps(keys.document).encode()
                self.send_response(keys.status)
                for name, value in {"Content-Length": str(len(body)), **keys.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    while keys.drips.is_set() and not keys.ends.wait(0.02):
                        self.wfile.write(b" ")
                    self.wfile.write(body)
                except OSError:
                    return

            def log_message(self, *arguments: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/jwks.json"

    def close(self) -> None:
        self.ends.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server():
    found = KeyServer()
    yield found
    found.close()


@pytest.fixture
def issuer(server):
    found = Issuer(keys={"one": "RSA", "two": "P-256"})
    server.document = found.jwks()
    return found


@pytest.fixture
def operator_lists(settings):
    """Sets the operator's list."""

    def listed(text: str) -> None:
        settings.ENVIRONMENT = replace(settings.ENVIRONMENT, token_issuer_hosts=text)

    return listed


@pytest.fixture(autouse=True)
def allowed(operator_lists, server):
    operator_lists(f"http://127.0.0.1:{server.port}")
