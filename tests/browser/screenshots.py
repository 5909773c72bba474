"""``pytest tests/browser/screenshots.py``: every page as a picture into var/screenshots, to be looked at by people.

Not collected by a run of all tests: of a picture nothing is asserted but that it is of the page that was asked for, with the
status that `pages.visit` expects of it. ``-k readme`` makes the one that is committed, docs/console.png.
"""

from __future__ import annotations

import pytest
from PIL import Image

from . import pages
from .conftest import ROOT, in_chinese

DESKTOP = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"}
PHONE = {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "device_scale_factor": 2}
LOOKS = {
    "desktop": DESKTOP,
    "phone": PHONE,
    "dark": {**DESKTOP, "color_scheme": "dark"},
    "dark-phone": {**PHONE, "color_scheme": "dark"},
    "chinese": DESKTOP,
    "chinese-phone": PHONE,
}
IN_CHINESE = {"chinese", "chinese-phone"}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("look", LOOKS)
def test_every_page_as_a_picture(console, open_page, look):
    folder = ROOT / "var" / "screenshots" / look
    folder.mkdir(parents=True, exist_ok=True)
    for person, addresses in (
        (None, pages.strangers(console)),
        ("alice", pages.tenants(console)),
        ("admin", pages.operators(console)),
    ):
        page = open_page(person, **LOOKS[look])
        if look in IN_CHINESE:
            in_chinese(page, console)
        for name, address in addresses.items():
            pages.visit(page, name, address)
            page.wait_for_timeout(9000 if name == "instance" else 300)
            page.screenshot(path=folder / f"{name}.png", full_page=True)


README_SIZE = {"width": 1280, "height": 810}
README_COLOURS = 64
"""Enough for a page without photographs, and a fifth of the bytes."""


def test_the_picture_of_the_readme(console, open_page, tmp_path):
    page = open_page("alice", viewport=README_SIZE, color_scheme="light")
    pages.visit(page, "instance-quota", pages.tenants(console)["instance-quota"])
    page.wait_for_timeout(9000)
    page.screenshot(path=tmp_path / "page.png")
    with Image.open(tmp_path / "page.png") as picture:
        few = picture.convert("RGB").quantize(README_COLOURS, dither=Image.Dither.NONE)
        few.save(ROOT / "docs" / "console.png", optimize=True)
