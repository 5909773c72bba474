"""A small OpenID provider on loopback: it signs with real keys, checks what it is given, and does wrong what a test has it do."""

from __future__ import annotations

import base64
import json
import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt

from tests.support.tokens import Issuer

CLIENT, SECRET = "sluice", "a secret/of: the client"


class Provider:
    """`wrong`: claims in place of good ones (None: left out). `status`, `held`: what the endpoint for tokens does."""

    def __init__(self) -> None:
        self.issuer = Issuer(keys={"one": "RSA"})
        self.wrong: dict[str, Any] = {}
        self.algorithm, self.kid, self.named = "RS256", "one", ""
        self.status, self.ends, self.is_slow = 200, threading.Event(), False
        self.codes: dict[str, dict[str, str]] = {}
        self.now_s = 0.0
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.endswith("/openid-configuration"):
                    self._say(200, provider.document())
                else:
                    self._say(200, provider.issuer.jwks())

            def do_POST(self) -> None:
                if provider.is_slow:
                    provider.ends.wait(20)
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self._say(
                    provider.status, provider.token({k: v[0] for k, v in form.items()}, self.headers["Authorization"])
                )

            def _say(self, status: int, document: dict[str, Any]) -> None:
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        self.issuer.name = self.url

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def document(self) -> dict[str, Any]:
        return {
            "issuer": self.named or self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
        }

    def signed_in(self, way: str, subject: str) -> dict[str, str]:
        """Somebody has followed the link and signed in: what their browser comes back with."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(way).query).items()}
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked | {"subject": subject}
        return {"code": code, "state": asked["state"]}

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any]:
        asked = self.codes.pop(form["code"], None)
        proof = base64.urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        basic = base64.b64encode(f"{CLIENT}:a%20secret%2Fof%3A%20the%20client".encode()).decode()
        if asked is None or asked["code_challenge"] != proof or authorization != f"Basic {basic}":
            return {"error": "invalid_grant"}
        good = {"aud": CLIENT, "nonce": asked["nonce"]}
        if self.algorithm in ("none", "HS256"):
            claims = self.issuer.claims(asked["subject"], self.now_s, 60, **good | self.wrong)
            key = "" if self.algorithm == "none" else "x" * 40
            return {"id_token": jwt.encode(claims, key, self.algorithm, {"kid": "one"})}
        return {
            "id_token": self.issuer.token(
                asked["subject"], self.now_s, kid=self.kid, algorithm=self.algorithm, **good | self.wrong
            )
        }

    def close(self) -> None:
        self.ends.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
