"""What pages, REST and metrics of a whole stack say: each place by the name that docs/runbooks/a-part-is-away.md has for it."""

from __future__ import annotations

import html
import http.cookiejar
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.stack.layout import PROJECT
from controlplane.stack.report import ADMIN_EMAIL

if TYPE_CHECKING:
    from email.message import Message

    from tests.integration.whole_stack import Api, Bought, WholeStack

TABLE = PROJECT / "docs/runbooks/a-part-is-away.md"
PATIENCE_S = 30
Headers = dict[str, str]


@dataclass(frozen=True)
class Answer:
    """Of one request."""

    status: int
    text: str
    headers: Message
    took_s: float

    @property
    def read(self) -> str:
        """What a person reads of a page: without tags, on one line."""
        body = re.sub(r"<(script|template|svg|head)\b.*?</\1>", " ", self.text, flags=re.DOTALL)
        words = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))
        return re.sub(r" ([.:;,])", r"\1", words)

    @property
    def problem(self) -> str:
        """Of an answer of REST: its status, and what it refuses with."""
        if self.status == 200:
            return "200"
        found = json.loads(self.text)
        assert found["type"] == f"urn:sluice:problem:{found['code']}"
        assert found["detail"]
        return f"{self.status} {found['code']}, Retry-After: {self.headers['Retry-After']}"


def said_while(heading: str) -> dict[str, str]:
    """Of the page's section of this heading, by place, what is said there."""
    (section,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", TABLE.read_text(), re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", section, re.MULTILINE)
    return {where.replace("`", ""): text.replace("`", "") for where, text in rows if where != "where"}


class Looker:
    """The administrator: an operator of the service, and the owner of an organisation with an instance."""

    def __init__(self, stack: WholeStack, api: Api) -> None:
        self.api = api
        self._url = stack.document()["console"]
        self._secrets = json.loads(stack.layout.secrets_file.read_text())
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', self.page("/sign-in").text)
        assert token is not None
        form = {
            "csrfmiddlewaretoken": token[1],
            "email": ADMIN_EMAIL,
            "password": self._secrets["admin_password"],
            "next": "/fleet",
        }
        body = urllib.parse.urlencode(form).encode()
        request = urllib.request.Request(f"{self._url}/sign-in", body, {"Referer": f"{self._url}/sign-in"})
        self._opener.open(request, timeout=PATIENCE_S).close()
        found = re.search(r"/(org-[a-z0-9]+)/instances", self.page("/").text)
        assert found is not None
        self._organisation = found[1]

    def page(self, path: str) -> Answer:
        """As a browser sees it."""
        return self._get(path, {}, self._opener)

    def places(self, instance: Bought, topic: str) -> dict[str, str]:
        """Addresses, by what the page calls them."""
        organisation, rest = f"/{self._organisation}", f"/api/v1/instances/{instance.id}"
        own = f"{organisation}/instances/{instance.id}"
        return {
            "List of instances": f"{organisation}/instances",
            "Instance": own,
            "Instance, health": f"{own}/health",
            "Quota": f"{own}/quota",
            "Bandwidth guarantee": f"{own}/quota-report",
            "Usage": f"{own}/usage",
            "Bill": f"{own}/bill",
            "Bills": f"{organisation}/bills",
            "History": f"{own}/history",
            "Topics": f"{own}/topics",
            "Topic": f"{own}/topics/{topic}",
            "Groups": f"{own}/groups",
            "Connections": f"{own}/connections",
            "Operations": f"{organisation}/operations",
            "Fleet": "/fleet",
            "Fleet, metering": "/fleet/metering",
            "Fleet, cluster": "/fleet/clusters/default",
            "Fleet, instance": f"/fleet/instances/{instance.id}",
            "REST: health": rest,
            "REST: allocation": f"{rest}/allocation",
            "REST: topics": f"{rest}/topics",
            "REST: groups": f"{rest}/groups",
            "REST: usage": f"{rest}/usage",
            "REST: metering": "/api/v1/metering",
            "REST: instances' metrics": "/api/v1/metrics",
            "/health/ready": "/health/ready",
            "/metrics": "/metrics",
        }

    def look(self, place: str, address: str) -> Answer:
        """What is said there, by whoever may ask."""
        if place.startswith("REST"):
            return self._get(address, {"Authorization": f"Bearer {self.api.key}"}, urllib.request.build_opener())
        if place == "/metrics":
            headers = {"Authorization": f"Bearer {self._secrets['metrics_token']}"}
            return self._get(address, headers, urllib.request.build_opener())
        return self.page(address)

    def says(self, place: str, answer: Answer) -> str:
        """As the table quotes it."""
        if place == "REST: health" and answer.status == 200:
            health = json.loads(answer.text)["health"]
            return " ".join([health["state"], *(reason["code"] for reason in health["reasons"])])
        if place in ("REST: allocation", "REST: topics", "REST: groups"):
            return answer.problem
        return answer.text if place.startswith(("REST", "/")) else answer.read

    def _get(self, path: str, headers: Headers, opener: urllib.request.OpenerDirector) -> Answer:
        request = urllib.request.Request(self._url + path, headers=headers)
        began = time.monotonic()
        try:
            with opener.open(request, timeout=PATIENCE_S) as answer:
                status, text, told = answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as refusal:
            with refusal:
                status, text, told = refusal.code, refusal.read().decode(), refusal.headers
        return Answer(status, text, told, time.monotonic() - began)
