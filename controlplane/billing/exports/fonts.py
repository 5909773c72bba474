"""Which characters a page can show.

Pages carry their font with them, so that they look the same everywhere: Bitstream Vera, which comes with reportlab. It has the
Latin letters of Europe and little else. A character that it lacks is shown as a lozenge, and the page says so; the id beside each
name is what identifies.
"""

from __future__ import annotations

import unicodedata

from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont

PLAIN, BOLD = "Vera", "VeraBd"
INSTEAD = "\N{LOZENGE}"


def _registered() -> frozenset[int]:
    """Makes the fonts known to reportlab; the code points that both have."""
    fonts = [TTFont(name, f"{name}.ttf") for name in (PLAIN, BOLD)]
    for font in fonts:
        pdfmetrics.registerFont(font)
    return frozenset.intersection(*(frozenset(font.face.charToGlyph) for font in fonts))


KNOWN = _registered()
"""Made by the import, which happens once: a font that is registered anew would be another one in the middle of a page."""


def shown(text: str) -> str:
    """The text as the fonts can show it: letters with their accents composed, a lozenge for each character they lack."""
    return "".join(char if ord(char) in KNOWN else INSTEAD for char in unicodedata.normalize("NFC", text))
