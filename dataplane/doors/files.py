"""The door to files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dataplane.doors.basics import Buffer, Callback


class File(Protocol):
    """An open file. Every method may raise OSError: the disk is full, or failing."""

    path: str

    def size(self) -> int: ...

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Write all buffers at the end in one call; returns the bytes written (all of them)."""
        ...

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer at the end of the file."""
        ...

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes."""
        ...

    def sync(self) -> None:
        """Force to disk (blocks: call it through Background)."""
        ...

    def fileno(self) -> int:
        """For sendfile. Simulated files have none and raise OSError."""
        ...

    def close(self) -> None:
        """Close. Harmless twice. Ranges that are still being sent keep the file readable."""
        ...


class NotInMemoryError(Exception):
    """These bytes would have to come from the disk, and whoever asked was not to wait for it. Nothing is wrong."""

    def __init__(self, file: File, position: int, size: int) -> None:
        super().__init__(f"{size} bytes of {file.path} at {position}")
        self.file, self.position, self.size = file, position, size


class Files(Protocol):
    """The file system below the data directories."""

    def at_once(self) -> AbstractContextManager[None]:
        """Inside of it, on the loop, reading what would have to be waited for raises NotInMemoryError instead."""
        ...

    def bring(self, account: str, missing: NotInMemoryError, done: Callback) -> None:
        """Read from the disk, beside the loop, what was missing; then call `done`. Accounts take turns."""
        ...

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and appending. Raises FileNotFoundError."""
        ...

    def read_file(self, path: str) -> bytes:
        """A whole small file. Raises FileNotFoundError."""
        ...

    def size(self, path: str) -> int:
        """Bytes in a file. Raises FileNotFoundError."""
        ...

    def modified_ms(self, path: str) -> int:
        """When a file's content was last changed, by the wall's clock. Raises FileNotFoundError."""
        ...

    def view(self, path: str) -> memoryview:
        """A whole file as memory that is only read, brought in as it is looked at.

        Valid whatever is done to the name; the file is replaced or removed, never changed in place. Holds a descriptor
        as long as the memory is referred to. Raises FileNotFoundError.
        """
        ...

    def write_file(self, path: str, data: bytes) -> None:
        """Replace a small file atomically and durably (new file, fsync, rename, fsync of the directory)."""
        ...

    def put_file(self, path: str, data: bytes) -> None:
        """The same without syncing: after a power cut it may be the old one, the new one, or damaged."""
        ...

    def sync_below(self, path: str) -> None:
        """Force to disk what was written, created, renamed and removed anywhere below a directory. Blocks. Raises OSError."""
        ...

    def map(self, path: str, size: int) -> memoryview:
        """A file of `size` bytes as memory: what is written there survives the process, not a power cut.

        Created with zeros, or enlarged, as needed; its room on the disk is taken at once. Mapped again at a larger size,
        the earlier memory is not to be used any more. Raises OSError.
        """
        ...

    def exists(self, path: str) -> bool: ...

    def list(self, path: str) -> list[str]:
        """Names in a directory, sorted; empty where there is none."""
        ...

    def space(self, path: str) -> tuple[int, int]:
        """Bytes of the disk that a directory is on, and how many of them can still be written. Raises OSError."""
        ...

    def make_directory(self, path: str) -> None:
        """With parents; harmless when it exists."""
        ...

    def lock(self, path: str) -> None:
        """Hold a lock file, made as needed, against other processes; harmless twice. Raises BlockingIOError, OSError."""
        ...

    def unlock(self, path: str) -> None:
        """Let go; harmless when it is not held."""
        ...

    def sync_directory(self, path: str) -> None:
        """Force to disk which names the directory holds: after create, rename and remove. Blocks. Raises OSError."""
        ...

    def rename(self, old: str, new: str) -> None: ...

    def remove(self, path: str) -> None:
        """A file; harmless when it does not exist."""
        ...

    def remove_tree(self, path: str) -> None:
        """A directory and all below it; harmless when it does not exist."""
        ...

    def memory(self) -> str:
        """Names the memory that holds what was written and not synced; empty where nobody can tell.

        While the name is the same, nothing of that is lost, whichever processes died.
        """
        ...
