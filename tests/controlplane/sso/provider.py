"""A small OpenID provider on loopback: it signs with real keys, checks what it is given, and does wrong what a test has it do."""

from __future__ import annotations

import base64
import html
import json
import threading
import time
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import jwt

from tests.support.tokens import Issuer

CLIENT, SECRET = "sluice", "a secret/of: the client"


PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Corp</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,"></head>
<body><main><h1>Corp</h1><form action="/signed-in">{hidden}<p><label>Name <input name="who"></label></p>
<button>Sign in</button></form></main></body></html>"""


class Provider:
    """`wrong`: claims in place of good ones (None: left out). `status`, `held`: what the endpoint for tokens does.

    People with browsers type a name on its page: they are ``<name>-there``, and ``<name>@example.com`` was verified.
    """

    def __init__(self) -> None:
        self.issuer = Issuer(keys={"one": "RSA"})
        self.wrong: dict[str, Any] = {}
        self.algorithm, self.kid, self.named = "RS256", "one", ""
        self.status, self.ends, self.is_slow = 200, threading.Event(), False
        self.codes: dict[str, dict[str, str]] = {}
        self.now_s: float | None = None  # None: by the clock of the machine
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.endswith("/openid-configuration"):
                    self._say(200, provider.document())
                elif self.path.startswith("/authorize?"):
                    self._page(provider.page(urlsplit(self.path).query))
                elif self.path.startswith("/signed-in?"):
                    self.send_response(302)
                    self.send_header("Location", provider.back(urlsplit(self.path).query))
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                else:
                    self._say(200, provider.issuer.jwks())

            def do_POST(self) -> None:
                if provider.is_slow:
                    provider.ends.wait(20)
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self._say(
                    provider.status, provider.token({k: v[0] for k, v in form.items()}, self.headers["Authorization"])
                )

            def _page(self, text: str) -> None:
                body = text.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

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

    def page(self, query: str) -> str:
        """Where somebody signs in. What was asked for is sent along."""
        hidden = "".join(
            f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">'
            for name, value in parse_qsl(query)
        )
        return PAGE.format(hidden=hidden)

    def back(self, query: str) -> str:
        """Where somebody is sent who has typed a name."""
        asked = dict(parse_qsl(query))
        who = asked.pop("who")
        answer = self.signed_in(f"{self.url}/authorize?{urlencode(asked)}", f"{who}-there")
        if "email" in asked["scope"].split():
            self.codes[answer["code"]]["email"] = f"{who}@example.com"
        return f"{asked['redirect_uri']}?{urlencode(answer | {'iss': self.url})}"

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any]:
        asked = self.codes.pop(form["code"], None)
        proof = base64.urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        basic = base64.b64encode(f"{CLIENT}:a%20secret%2Fof%3A%20the%20client".encode()).decode()
        if asked is None or asked["code_challenge"] != proof or authorization != f"Basic {basic}":
            return {"error": "invalid_grant"}
        good: dict[str, Any] = {"aud": CLIENT, "nonce": asked["nonce"]}
        if "email" in asked:
            good |= {"email": asked["email"], "email_verified": True}
        now_s = time.time() if self.now_s is None else self.now_s
        if self.algorithm in ("none", "HS256"):
            claims = self.issuer.claims(asked["subject"], now_s, 60, **good | self.wrong)
            key = "" if self.algorithm == "none" else "x" * 40
            return {"id_token": jwt.encode(claims, key, self.algorithm, {"kid": "one"})}
        return {
            "id_token": self.issuer.token(
                asked["subject"], now_s, kid=self.kid, algorithm=self.algorithm, **good | self.wrong
            )
        }

    def close(self) -> None:
        self.ends.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
