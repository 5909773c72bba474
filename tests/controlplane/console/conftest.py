"""People with browsers: Django's client, signed in, on top of the fake world of the control plane's tests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING

import pytest
from django.test import Client

from controlplane.accounts import services as accounts

if TYPE_CHECKING:
    from django.http import HttpResponse

    from controlplane.accounts.models import User
    from controlplane.tenants.models import Organisation
    from tests.controlplane.conftest import Person


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@dataclass
class Visitor:
    """Someone in front of the console."""

    client: Client
    user: User
    organisation: Organisation

    def address(self, path: str = "instances") -> str:
        return f"/{self.organisation.id}/{path}"

    def get(self, path: str = "instances", **options) -> HttpResponse:
        return self.client.get(self.address(path), **options)

    def post(self, path: str, data: dict | None = None, **options) -> HttpResponse:
        return self.client.post(self.address(path), data or {}, **options)


def visit(person: Person) -> Visitor:
    client = Client()
    client.force_login(person.user)
    return Visitor(client, person.user, person.organisation)


@pytest.fixture
def at_alice(alice) -> Visitor:
    return visit(alice)


@pytest.fixture
def at_bob(bob) -> Visitor:
    return visit(bob)


@pytest.fixture
def at_viewer(viewer) -> Visitor:
    return visit(viewer)


@pytest.fixture
def at_charlie(charlie) -> Visitor:
    return visit(charlie)


@pytest.fixture
def at_staff(alice) -> Client:
    user, _ = accounts.admin_ensure(email="admin@example.com", password="x")
    client = Client()
    client.force_login(user)
    return client


def text_of(response: HttpResponse) -> str:
    """What a person reads: without tags, on one line."""
    body = re.sub(r"<(script|template|svg)\b.*?</\1>", " ", response.content.decode(), flags=re.DOTALL)
    body = re.sub(r"<[^>]+>", " ", body)
    return re.sub(r"\s+", " ", body.replace("&#x27;", "'").replace("&quot;", '"').replace("&amp;", "&"))


def shown_by(response: HttpResponse) -> dict[str, str]:
    """What a page that was opened sends along with its form, so that it takes nothing back from others."""
    return {"shown": unescape(re.search(r'name="shown" value="([^"]*)"', response.content.decode())[1])}


def problem_beside(response: HttpResponse, field: str) -> str:
    """The sentence that stands beside a field; fails if there is none or if the input does not point at it."""
    body = response.content.decode()
    block = re.search(rf'<ul class="problems" id="id_{field}_error">(.*?)</ul>', body, flags=re.DOTALL)
    assert block, f"nothing is said beside {field}: {text_of(response)}"
    tag = re.search(rf'<(?:input|textarea|select)[^>]*\bname="{field}"[^>]*>', body)
    assert tag, field
    if 'type="radio"' not in tag[0]:
        assert 'aria-invalid="true"' in tag[0]
        assert f"id_{field}_error" in tag[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", block[1])).strip()
