"""Translations that gettext can read, made of those that people can: `locale/*/LC_MESSAGES/django.po`.

Only text files are in the repository. gettext wants a compiled `.mo`, and an installation has no GNU gettext. So `.mo` files are
made where Django's settings are read, by every process: at the first start, in a fresh clone's first test, and after a `.po` has
changed. Their folder is called after the digest of what they were made of, so they are never out of date, and processes of two
releases keep apart. A `.po` that cannot be read stops the process: a console that is English because nobody compiled would say
nothing (docs/decisions/0031).
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from io import BytesIO
from pathlib import Path

FORM = b"1"
"""Of what is made: raised, the same texts are compiled anew."""


def compiled(source: Path, into: Path) -> Path:
    """A folder with the `.mo` files of `source`: below `into`, or of this process alone where nothing can be written there."""
    texts = {path.relative_to(source): path.read_bytes() for path in sorted(source.rglob("*.po"))}
    made = into / _digest(texts)
    if all((made / name).with_suffix(".mo").exists() for name in texts):
        return made
    try:
        made.mkdir(parents=True, exist_ok=True)
    except OSError:  # a read-only image, or another user's folder
        made = Path(tempfile.mkdtemp(prefix="sluice-locale-"))
        atexit.register(shutil.rmtree, made, ignore_errors=True)
    for name, text in texts.items():
        _compile(text, (made / name).with_suffix(".mo"))
    return made


def _digest(texts: dict[Path, bytes]) -> str:
    digest = hashlib.sha256(FORM)
    for name, text in texts.items():
        digest.update(f"{name.as_posix()} {len(text)}\n".encode() + text)
    return digest.hexdigest()[:16]


def _compile(text: bytes, target: Path) -> None:
    """Whole or not at all: others may be starting, too."""
    # Imported here: a process that finds everything made does without it.
    from babel.messages.mofile import write_mo  # noqa: PLC0415
    from babel.messages.pofile import read_po  # noqa: PLC0415

    made = BytesIO()
    write_mo(made, read_po(BytesIO(text), abort_invalid=True))
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(made.getvalue())
    Path(name).replace(target)
