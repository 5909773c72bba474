"""Which browser a `User-Agent` is of, in words. Pure.

A browser says what it likes, and often the names of others before its own: the first that fits in these lists is it. It is for
the eyes of the person whose session it is, and decides nothing.
"""

from __future__ import annotations

BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
)
SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
UNKNOWN = "Another browser"


def browser_text(agent: str) -> str:
    """``Firefox on Linux``."""
    browser = next((name for mark, name in BROWSERS if mark in agent), UNKNOWN)
    system = next((name for mark, name in SYSTEMS if mark in agent), "")
    return f"{browser} on {system}" if system else browser
