"""A real browser before the console of world.py. Skipped with a sentence where there is no Chromium.

A page that reports an error (a script that throws, a breach of the Content-Security-Policy, a file that is missing)
fails the test that opened it.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .words import CHINESE, ENGLISH, Words
from .world import PASSWORD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SCREENS = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 360, "height": 740}}
SCHEMES = ("light", "dark")
LANGUAGES = (ENGLISH, CHINESE)
IN_ENGLISH = Words(ENGLISH)
OFTEN = {("desktop", "light", ENGLISH)}
"""The looks in which `make test` tells stories; the others are `long`. Phones, the dark and Chinese it has in
test_accessibility.py and test_languages.py: of every page."""
STARTS_WITHIN_S, TAKEN_WITHIN_S = 120, 60
PATIENCE_MS = 30_000
"""For whatever a page is to show or do: where others want the cores, one that comes again every 10 s may take twice as long."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [item for item in items if Path(__file__).parent in item.path.parents]
    for item in here:
        item.add_marker(pytest.mark.integration)
        if CHROMIUM is None:
            item.add_marker(pytest.mark.skip(reason="no Chromium here: apt-get install chromium, or set CHROMIUM"))


@dataclass
class Console:
    """Where the console is and what is in it."""

    url: str
    directory: Path
    organisation: str
    instances: dict[str, str]
    invitation: str
    sign_up: str
    rule: str
    month: str
    """The last one that was invoiced, as 2026-10."""
    provider: str
    """Where an OpenID provider is, which has to be switched on."""
    operation: str
    """One that has succeeded."""
    links: dict[str, str]
    """Of mails to alice, by what they are for: addresses of pages."""

    def switch(self, name: str, *, on: bool) -> None:
        if on:
            (self.directory / name).touch()
        else:
            (self.directory / name).unlink(missing_ok=True)

    def address(self, path: str) -> str:
        return f"{self.url}/{self.organisation}/{path}"


@dataclass(frozen=True)
class Look:
    """How somebody sees the console."""

    screen: str
    scheme: str
    words: Words

    @property
    def options(self) -> dict[str, Any]:
        """Of a browser's context."""
        return {"viewport": SCREENS[self.screen], "color_scheme": self.scheme}

    @property
    def name(self) -> str:
        """As a part of names that a story makes: no other look has it."""
        return f"{self.screen}-{self.scheme}-{self.words.language}"


@pytest.fixture(
    params=[
        pytest.param(look, id=" ".join(look), marks=[] if look in OFTEN else [pytest.mark.long])
        for look in itertools.product(SCREENS, SCHEMES, LANGUAGES)
    ]
)
def look(request) -> Look:
    screen, scheme, language = request.param
    return Look(screen, scheme, Words(language))


def fits(page: Page) -> bool:
    """Nothing is wider than the screen."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def tabs_fit(page: Page) -> bool:
    """Each tab of a page is in sight: none is behind the edge of the list, or of the screen."""
    return page.evaluate(
        "[...document.querySelectorAll('.tabs')].every(nav => nav.scrollWidth <= nav.clientWidth"
        " && [...nav.querySelectorAll('a')].every(a => a.getBoundingClientRect().right <= document.documentElement.clientWidth))"
    )


@pytest.fixture(scope="session")
def console(tmp_path_factory) -> Iterator[Console]:
    directory = tmp_path_factory.mktemp("console")
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.browser.world", str(directory)], cwd=ROOT, stdout=log, stderr=log
        )
    try:
        until = time.monotonic() + STARTS_WITHIN_S
        while not (directory / "port").exists():
            assert process.poll() is None, (directory / "log").read_text()
            assert time.monotonic() < until, (directory / "log").read_text()
            time.sleep(0.05)
        found = json.loads((directory / "world.json").read_text())
        yield Console(f"http://127.0.0.1:{(directory / 'port').read_text()}", directory, **found)
    finally:
        process.terminate()
        process.wait(60)  # it may be in the middle of a write to a busy disk


@pytest.fixture(
    scope="module"
)  # not longer: while it lives, this process has a running asyncio loop, and others cannot
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, headless=True)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium, console) -> Iterator[Callable[..., Page]]:
    """New pages, each of a person of its own; what they complain about fails the test."""
    contexts, complaints = [], []

    def opened(person: str | None = None, *, look: Look | None = None, **options) -> Page:
        words = IN_ENGLISH
        if look is not None:
            options, words = {**look.options, **options}, look.words
        context = chromium.new_context(base_url=console.url, **options)
        if words.language != ENGLISH:
            context.add_cookies([{"name": "language", "value": words.language, "url": console.url}])
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))
        page.on(
            "console",
            lambda message: (
                complaints.append(f"{page.url}: {message.text}")
                if message.type == "error" and "the server responded with a status of" not in message.text
                else None
            ),
        )
        if person:
            sign_in(page, person, words)
        return page

    yield opened
    for context in contexts:
        context.close()
    for name in (
        "cluster-away",
        "brokers-slow",
        "storage-full",
        "broker-away",
        "consumers-stopped",
        "letters",
        "passkeys",
        "provider",
    ):
        console.switch(name, on=False)
    assert complaints == []


def taken(console: Console, wanted: Callable[[dict], Any]) -> Any:
    """What receivers have taken, as soon as `wanted` finds something in it."""
    until = time.monotonic() + TAKEN_WITHIN_S
    while True:
        path = console.directory / "taken.json"
        found = json.loads(path.read_text()) if path.exists() else {"mails": [], "hooks": []}
        if result := wanted(found):
            return result
        assert time.monotonic() < until, found
        time.sleep(0.1)


def in_chinese(page: Page, console: Console) -> Page:
    """What the switch of languages does, on a page of somebody who has signed in already, or has not."""
    page.context.add_cookies([{"name": "language", "value": "zh-hans", "url": console.url}])
    return page


def sign_in(page: Page, person: str, words: Words = IN_ENGLISH) -> None:
    page.goto("/sign-in")
    page.get_by_label(words("Email")).fill(f"{person}@example.com")
    page.get_by_label(words("Password")).fill(PASSWORD)
    page.get_by_role("button", name=words("Sign in"), exact=True).click()
    page.wait_for_url(lambda url: "/sign-in" not in url)
