"""The page of REST: of files of our own, for everybody."""

from __future__ import annotations

import re

from django.contrib.staticfiles import finders


def test_it_is_made_of_our_own_files(client):
    page = client.get("/docs/api")
    assert page.status_code == 200
    body = page.content.decode()
    files = re.findall(r'(?:src|href)="/static/([^"]+)"', body)
    assert any("swagger-ui-bundle" in name for name in files)
    assert [name for name in files if finders.find(name) is None] == []
    assert 'data-schema="/api/v1/schema"' in body


def test_strangers_are_led_there(client, db):
    assert 'href="/docs/api"' in client.get("/").content.decode()
