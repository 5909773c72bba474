"""Which characters a page can show, and in which font.

Pages carry their font with them, so that they look the same everywhere: Bitstream Vera, which comes with reportlab. It has the
Latin letters of Europe and little else. Chinese is in a font that PDF readers bring themselves: a page need not carry
megabytes of it. A character that neither has is shown as a lozenge, and the page says so; the id beside each name is what
identifies.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import groupby

from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont

PLAIN, BOLD = "Vera", "VeraBd"
CHINESE = "STSong-Light"
CHINESE_CHARACTERS = "gbk"
"""A codec of Python's: what it has in two bytes, the collection of glyphs that the font is of (Adobe-GB1) has too."""
INSTEAD = "\N{LOZENGE}"


def _registered() -> frozenset[int]:
    """Makes the fonts known to reportlab; the code points that both of ours have."""
    fonts = [TTFont(name, f"{name}.ttf") for name in (PLAIN, BOLD)]
    for font in (*fonts, UnicodeCIDFont(CHINESE)):
        pdfmetrics.registerFont(font)
    return frozenset.intersection(*(frozenset(font.face.charToGlyph) for font in fonts))


KNOWN = _registered()
"""Made by the import, which happens once: a font that is registered anew would be another one in the middle of a page."""


def runs(text: str) -> Iterator[tuple[str, bool]]:
    """The text as the fonts can show it, in parts, and of each whether it is in the Chinese font.

    Letters have their accents composed; a lozenge stands for each character that the fonts lack.
    """
    composed = unicodedata.normalize("NFC", text)
    for is_chinese, part in groupby(composed, _is_chinese):
        yield "".join(char if is_chinese or ord(char) in KNOWN else INSTEAD for char in part), is_chinese


def shown(text: str) -> str:
    """The same in one."""
    return "".join(part for part, _ in runs(text))


def _is_chinese(char: str) -> bool:
    return ord(char) not in KNOWN and len(char.encode(CHINESE_CHARACTERS, errors="ignore")) > 1
