"""`compacted-to`, in a partition's directory: below this offset segments may end before the next one begins.

    <offset> <topic id>

Recovery after an unclean stop would take such a gap for a torn log, were it to look there. The marker keeps it away:
everything below the offset is on disk (only what was flushed is compacted, and what is new is synced), so the recovery
point is never below it.

It is written beside the loop, by path. Meanwhile the topic may be deleted and created again under its name, and what was
meant for the old one's directory lands in the new one's, where it would vouch for batches that are not on disk. So the
marker says whose it is, and another topic's counts as none. (Rejected: writing it on the loop, which waits for the disk
then.) Releases before the topic id wrote the offset alone; that is believed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID

    from dataplane.doors import Files

COMPACTED_TO = "compacted-to"


def read(files: Files, directory: str, topic_id: UUID) -> int:
    """The offset; 0 where nothing was compacted, or where the file does not say, or is of another topic's life."""
    try:
        offset, *of = files.read_file(f"{directory}/{COMPACTED_TO}").decode().split()
        return int(offset) if of in ([], [str(topic_id)]) else 0
    except (FileNotFoundError, ValueError):
        return 0


def write(files: Files, directory: str, topic_id: UUID, offset: int) -> None:
    """Durably."""
    files.write_file(f"{directory}/{COMPACTED_TO}", f"{offset} {topic_id}\n".encode())
