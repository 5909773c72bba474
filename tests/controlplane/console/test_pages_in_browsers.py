"""Every page of the console is in the list that browsers walk: axe, the languages' check and the screenshots leave none out."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.urls import resolve

import controlplane.urls  # noqa: F401  # it knows the converters that the console's routes use
from controlplane.console import urls
from tests.browser import pages
from tests.browser.conftest import Console

from .test_who_sees_what import POSTS_ONLY

CONSOLE = Console(
    url="http://127.0.0.1:1",
    directory=Path(),
    organisation="org-abcdefghijkl",
    instances={name: f"ins-{name:0>8.8}" for name in ("clickstream", "orders", "archive")},
    invitation="/invitations/a-token",
    sign_up="/sign-up/a-token",
    rule="rule-000000000001",
    month="2026-10",
    provider="",
    operation="op-000000000001",
    links={"change": "/account/address/t", "reset": "/password/new/t", "browser": "/sign-in/browser/t"},
)
PARTS = {
    "fleet_brokers",
    "fleet_rebalance_now",
    "instance_estimate",
    "instance_health",
    "instance_quota_now",
    "instance_status",
    "operation_steps",
    "topic_messages_search",
    "topic_messages_tail",
}
"""Parts of pages that are in the list, which ask for them."""
FILES = {
    "credit_note_focus",
    "credit_note_pdf",
    "fleet_credit_note_pdf",
    "fleet_live",
    "instance_ca",
    "instance_live",
    "invoice_focus",
    "invoice_pdf",
    "organisation_audit_file",
    "statement_focus",
    "statement_pdf",
}
"""PDF, CSV, PEM and JSON."""
ELSEWHERE = {
    "api_docs": "test_api_docs.py: what others have written, which axe is asked about in part",
    "sign_in_code": "test_identity_story.py: there is one between a password and a code alone",
    "sso_back": "nobody stays there: it leads on",
}


def names_of(of):
    """By name of the list, the page that its address leads to; "nothing-here" leads to none."""
    addresses = getattr(pages, of)(CONSOLE)
    return {
        name: resolve(urlsplit(address).path).url_name for name, address in addresses.items() if name != "nothing-here"
    }


def test_every_page_is_in_the_list():
    listed = {page for of in ("strangers", "tenants", "operators") for page in names_of(of).values()}
    there = {route.name for route in urls.urlpatterns}
    assert there - listed == POSTS_ONLY | PARTS | FILES | set(ELSEWHERE)


@pytest.mark.parametrize(("of", "is_operators"), [("tenants", False), ("operators", True)])
def test_each_is_looked_at_by_somebody_to_whom_it_is_open(of, is_operators):
    assert {page for page in names_of(of).values() if page.startswith("fleet") is not is_operators} == set()


def test_the_answers_that_are_named_are_of_pages_in_the_list():
    assert set(pages.ANSWERS) <= {
        name for of in ("strangers", "tenants", "operators") for name in getattr(pages, of)(CONSOLE)
    }
