"""Names that clients of Kafka choose, as segments of an address: of groups, members, users, transactional ids.

They may hold anything, a "/" too, and a server sees "%2F" and "/" alike. So a name that no segment can be as it is stands in
addresses as "~" and its UTF-8 in base64url without "=": a/b is ~YS9i. Such are names with a "/", "." and "..", which clients
resolve, names that begin with "~", and those with control characters, which proxies and servers refuse or cut (NUL, line ends).
Every other name is itself, and may be written so too. So a segment is one name.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

MARK = "~"


def segment_of(name: str) -> str:
    """A name as a segment, before it is percent-encoded: as it is where that is one."""
    return marked(name) if _is_no_segment(name) else name


def marked(name: str) -> str:
    """A name in base64url."""
    return MARK + urlsafe_b64encode(name.encode()).decode().rstrip("=")


def name_of(segment: str) -> str:
    """The name. Raises ValueError where the segment begins with "~" and is not what `marked` makes of a name."""
    if not segment.startswith(MARK):
        return segment
    text = segment.removeprefix(MARK)
    name = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    if not name or marked(name) != segment:
        raise ValueError("no name is written so")
    return name


def _is_no_segment(name: str) -> bool:
    return "/" in name or name in (".", "..") or name.startswith(MARK) or any(map(_is_control, name))


def _is_control(letter: str) -> bool:
    return letter < " " or "\x7f" <= letter <= "\x9f"
