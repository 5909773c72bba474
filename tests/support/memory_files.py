"""An in-memory Files door: faithful, and able to fail.

    files.crash()            the power goes: every file is what it was when it was last synced; open files are dead.
    files.crash(random)      the same, but the disk had already got some part of what was not synced (a torn tail)
    files.capacity = 1000    the disk is full at 1,000 bytes: appends write what fits and raise ENOSPC
    files.fault = hook       called as hook(operation, path) before each operation; may raise OSError

Names (create, rename, remove) and `write_file` are durable at once; only appended, truncated and mapped content waits
for `sync`. A file created and never synced survives a crash empty, which is the unfriendlier of the two things that happen.
"""

from __future__ import annotations

import errno
import os
from contextlib import nullcontext
from typing import TYPE_CHECKING

from dataplane.tasks import Future

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


class _Content:
    """A file on the disk. Open files refer to it, so a removed or renamed one stays readable."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.synced = b""
        self.modified_ms = 0


class MemoryFile:
    def __init__(self, files: MemoryFiles, path: str, content: _Content) -> None:
        self.path = path
        self._files, self._content = files, content
        self._generation = files.generation
        self._writable = True

    def _enter(self, operation: str, *, writes: bool = False) -> None:
        if self._generation != self._files.generation or (writes and not self._writable):
            raise OSError(errno.EBADF, f"{operation} on a file that was closed", self.path)
        self._files.enter(operation, self.path)

    def size(self) -> int:
        self._enter("size")
        return len(self._content.data)

    def append(self, buffers: Sequence[bytes | bytearray | memoryview]) -> int:
        self._enter("append", writes=True)
        data = b"".join(buffers)
        room = self._files.room()
        if room is not None and len(data) > room:
            self._content.data += data[:room]
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        self._content.data += data
        self._content.modified_ms = self._files.now_ms()
        return len(data)

    def read(self, position: int, size: int) -> bytes:
        self._enter("read")
        return bytes(self._content.data[position : position + size])

    def truncate(self, size: int) -> None:
        self._enter("truncate", writes=True)
        del self._content.data[size:]

    def sync(self) -> None:
        self._enter("sync")
        self._content.synced = bytes(self._content.data)

    def fileno(self) -> int:
        raise OSError(errno.ENOTSUP, "a file in memory has no descriptor", self.path)

    def close(self) -> None:
        self._writable = False


class MemoryFiles:
    def __init__(self) -> None:
        self._contents: dict[str, _Content] = {}
        self._directories: dict[str, None] = {"/": None}
        self.generation = 0
        self.capacity: int | None = None
        self.now_ms: Callable[[], int] = lambda: 0  # the clock of the files' dates
        self.fault: Callable[[str, str], None] | None = None

    # --- failing ------------------------------------------------------------------------------------------------------

    def enter(self, operation: str, path: str) -> None:
        if self.fault is not None:
            self.fault(operation, path)

    def room(self) -> int | None:
        return None if self.capacity is None else max(0, self.capacity - self.used())

    def used(self) -> int:
        return sum(len(content.data) for content in self._contents.values())

    def crash(self, random: Random | None = None) -> None:
        self.generation += 1
        for content in self._contents.values():
            kept = bytearray(content.synced)
            if random is not None and content.data[: len(kept)] == kept:
                kept += content.data[len(kept) : random.randint(len(kept), len(content.data))]
            content.data = kept
            content.synced = bytes(kept)

    def memory(self) -> str:
        return str(self.generation)

    def content(self, path: str) -> bytearray:
        """The bytes of a file, to be damaged."""
        return self._contents[path].data

    def on_disk(self, path: str) -> bytes:
        """As much of what a file holds as a power cut leaves at least; empty where there is none."""
        content = self._contents.get(path)
        if content is None:
            return b""
        data, synced = content.data, content.synced
        while not data.startswith(synced):  # it was cut: what comes back is not of this file
            synced = synced[: len(data)] if len(synced) > len(data) else synced[:-1]
        return synced

    def sync_all(self) -> None:
        """What a disk does by itself, some time."""
        for content in self._contents.values():
            content.synced = bytes(content.data)

    # --- the door -----------------------------------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        self.enter("open", path)
        if path not in self._contents:
            if not create or _parent(path) not in self._directories:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self._contents[path] = _Content()
        return MemoryFile(self, path, self._contents[path])

    def read_file(self, path: str) -> bytes:
        self.enter("read_file", path)
        if path not in self._contents:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return bytes(self._contents[path].data)

    def size(self, path: str) -> int:
        self.enter("size", path)
        if path not in self._contents:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return len(self._contents[path].data)

    def modified_ms(self, path: str) -> int:
        self.enter("modified_ms", path)
        if path not in self._contents:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return self._contents[path].modified_ms

    def at_once(self) -> nullcontext[None]:
        return nullcontext()  # it is all in memory

    def view(self, path: str) -> memoryview:
        self.enter("view", path)
        return memoryview(self.read_file(path))

    def write_file(self, path: str, data: bytes) -> None:
        self.enter("write_file", path)
        if _parent(path) not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        room = self.room()
        if room is not None and len(data) > room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        content = self._contents[path] = _Content()
        content.data += data
        content.synced = bytes(data)

    def put_file(self, path: str, data: bytes) -> None:
        self.write_file(path, data)

    def sync_below(self, path: str) -> None:
        self.enter("sync_below", path)
        for name, content in self._contents.items():
            if name.startswith(path + "/"):
                content.synced = bytes(content.data)

    def map(self, path: str, size: int) -> memoryview:
        self.enter("map", path)
        if _parent(path) not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        content = self._contents.setdefault(path, _Content())
        room = self.room()
        if room is not None and size - len(content.data) > room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        content.data = bytearray(content.data.ljust(size, b"\0"))  # another object: the old memory is not this file
        return memoryview(content.data)

    def exists(self, path: str) -> bool:
        return path in self._contents or path in self._directories

    def list(self, path: str) -> list[str]:
        self.enter("list", path)
        below = path.rstrip("/") + "/"
        names = [name for name in [*self._contents, *self._directories] if name.startswith(below) and name != below]
        return sorted({name[len(below) :].split("/", 1)[0] for name in names})

    def space(self, path: str) -> tuple[int, int]:
        self.enter("space", path)
        if path not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        total = self.capacity if self.capacity is not None else 2**40
        return total, total - self.used()

    def make_directory(self, path: str) -> None:
        self.enter("make_directory", path)
        while path not in self._directories:
            self._directories[path] = None
            path = _parent(path)

    def lock(self, path: str) -> None:
        """A process that is gone holds nothing: only `fault` makes it fail."""
        self.enter("lock", path)

    def unlock(self, path: str) -> None:
        pass

    def sync_directory(self, path: str) -> None:
        self.enter("sync_directory", path)
        if path not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)

    def rename(self, old: str, new: str) -> None:
        self.enter("rename", old)
        if not self.exists(old):
            raise FileNotFoundError(errno.ENOENT, "no such file", old)

        def renamed(name: str) -> str:
            return new + name[len(old) :] if name == old or name.startswith(old + "/") else name

        self._contents = {renamed(name): content for name, content in self._contents.items()}
        self._directories = {renamed(name): None for name in self._directories}

    def remove(self, path: str) -> None:
        self.enter("remove", path)
        self._contents.pop(path, None)

    def remove_tree(self, path: str) -> None:
        self.enter("remove_tree", path)
        if path not in self._directories:  # thousands of topics are created at once, and none of them is there before
            self.remove(path)
            return
        below = path + "/"
        self._contents = {n: c for n, c in self._contents.items() if n != path and not n.startswith(below)}
        self._directories = {n: None for n in self._directories if n != path and not n.startswith(below)}


class ImmediateBackground:
    """A background door that works at once. `held` keeps work back until `release`."""

    def __init__(self) -> None:
        self.held = False
        self._waiting: list = []

    def run(self, work):
        future: Future = Future()
        self._waiting.append((work, future))
        if not self.held:
            self.release()
        return future

    def run_apart(self, work, bytes_per_s):
        return self.run(lambda: work(lambda count: None))

    def release(self) -> None:
        waiting, self._waiting = self._waiting, []
        for work, future in waiting:
            try:
                value = work()
            except Exception as error:  # noqa: BLE001 - the future carries it
                future.fail(error)
            else:
                future.resolve(value)
