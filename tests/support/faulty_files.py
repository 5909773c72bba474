"""A Files door in memory that can stop the writer after every call, and knows what a power cut would leave.

Two things can be lost apart from each other: the content of a file until the file is synced, and the names in a
directory (created, renamed, removed) until the directory is synced. A directory loses its newest changes: what
survives is what was synced and then the first so many changes, any number of them, each directory on its own.

    files.observer = hook        called as hook(call) after every call that changes something, and, for a write, also
                                 in the middle of it, with only some of the bytes there. `files.image()` is then the
                                 disk of a writer that was stopped at that place.
    files.after_kill()           the disk after the process was killed there: everything written is there
    files.after_power_cut(how)   the disk after the power went; `how` is one of POWER_CUTS or a random.Random

Content that was not synced is, with a Random: gone, there, cut anywhere, or there with blocks of zeros and garbage.
"""

from __future__ import annotations

import errno
import os
from contextlib import nullcontext
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

STRICT, NAMES_ONLY = "strict", "names only"
POWER_CUTS = (STRICT, NAMES_ONLY)
"""Nothing that was not synced is left; or all names are, and only the contents that were synced."""
_BLOCK = 64


class _Inode:
    """A file's content. Immutable bytes, so that an image of the disk is cheap."""

    def __init__(self, data: bytes = b"", synced: bytes = b"") -> None:
        self._data, self.synced = data, synced
        self.mapped: bytearray | None = None
        self.unlisted = False  # this process made it, and has not synced its name

    @property
    def data(self) -> bytes:
        return self._data if self.mapped is None else bytes(self.mapped)

    @data.setter
    def data(self, data: bytes) -> None:
        self._data, self.mapped = data, None


class _Directory:
    """Names now, names on disk, and the changes between them in order."""

    def __init__(self) -> None:
        self.entries: dict[str, _Node] = {}
        self.synced: dict[str, _Node] = {}
        self.pending: list[tuple[str, str, _Node | None]] = []

    def link(self, name: str, node: _Node) -> None:
        self.entries[name] = node
        self.pending.append(("link", name, node))

    def unlink(self, name: str) -> None:
        del self.entries[name]
        self.pending.append(("unlink", name, None))

    def rename(self, old: str, new: str) -> None:
        self.entries[new] = self.entries.pop(old)
        self.pending.append(("rename", f"{old}\0{new}", None))

    def sync(self) -> None:
        self.synced = dict(self.entries)
        self.pending = []

    def surviving(self, changes: int) -> dict[str, _Node]:
        names = dict(self.synced)
        for operation, name, node in self.pending[:changes]:
            if operation == "link" and node is not None:
                names[name] = node
            elif operation == "unlink":
                names.pop(name, None)
            else:
                old, _, new = name.partition("\0")
                if old in names:
                    names[new] = names.pop(old)
        return names


_Node = _Inode | _Directory


class FaultyFile:
    """An open file."""

    def __init__(self, files: FaultyFiles, path: str, node: _Inode) -> None:
        self.path = path
        self._files, self._node = files, node
        self._writable = True

    def _check_writable(self) -> None:
        if not self._writable:
            raise OSError(errno.EBADF, "the file was closed", self.path)

    def size(self) -> int:
        return len(self._node.data)

    def append(self, buffers: Sequence[bytes | bytearray | memoryview]) -> int:
        self._check_writable()
        before, new = self._node.data, b"".join(buffers)
        self._files.enter("append", self.path)
        room = self._files.room()
        if room is not None and len(new) > room:
            self._node.data = before + new[:room]
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        for size in self._files.tears(len(new)):
            self._node.data = before + new[:size]
            self._files.done(f"part of append {self.path}")
        self._node.data = before + new
        self._files.done(f"append {self.path}")
        return len(new)

    def read(self, position: int, size: int) -> bytes:
        self._files.enter("read", self.path)
        return self._node.data[position : position + size]

    def truncate(self, size: int) -> None:
        self._check_writable()
        self._files.enter("truncate", self.path)
        self._node.data = self._node.data[:size]
        self._files.done(f"truncate {self.path}")

    def sync(self) -> None:
        self._files.enter("sync", self.path)
        self._node.synced = self._node.data
        self._files.done(f"sync {self.path}")
        if self._node.unlisted:
            self._files.sync_directory(_parent(self.path))
            self._node.unlisted = False

    def fileno(self) -> int:
        raise OSError(errno.ENOTSUP, "a file in memory has no descriptor", self.path)

    def close(self) -> None:
        self._writable = False


class FaultyFiles:
    """The disk. `fault(operation, path)` is called before each operation and may raise OSError."""

    def __init__(self) -> None:
        self._root = _Directory()
        self._boot = 0
        self.observer: Callable[[str], None] | None = None
        self.fault: Callable[[str, str], None] | None = None
        self.tearing = Random(0)
        self.capacity: int | None = None

    # --- failing ------------------------------------------------------------------------------------------------------

    def enter(self, operation: str, path: str) -> None:
        if self.fault is not None:
            self.fault(operation, path)

    def done(self, call: str) -> None:
        if self.observer is not None:
            self.observer(call)

    def tears(self, size: int) -> Iterable[int]:
        if self.observer is None or size < 2:
            return ()
        return sorted({1, size - 1, self.tearing.randrange(1, size), self.tearing.randrange(1, size)})

    def room(self) -> int | None:
        return None if self.capacity is None else max(0, self.capacity - _size(self._root))

    def image(self) -> FaultyFiles:
        """The disk as it is now, with all that is not synced."""
        return self._copy(_clone(self._root, {}))

    def after_kill(self) -> FaultyFiles:
        """As `image`: the page cache belongs to nobody's process."""
        return self.image()

    def after_power_cut(self, how: str | Random) -> FaultyFiles:
        found = self._copy(_survivor(self._root, how, {}))
        found._boot += 1
        return found

    def _copy(self, root: _Node) -> FaultyFiles:
        copy = FaultyFiles()
        assert isinstance(root, _Directory)
        copy._root = root
        copy._boot = self._boot
        copy.tearing = Random(1)
        return copy

    def content(self, path: str) -> bytes:
        """The bytes of a file."""
        return self._file(path).data

    def damage(self, path: str, data: bytes) -> None:
        """Replace what is on the disk, behind everybody's back."""
        node = self._file(path)
        node.data = node.synced = data

    def paths(self) -> list[str]:
        """Of all files, sorted."""
        return sorted(_paths(self._root, ""))

    # --- the door -----------------------------------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False) -> FaultyFile:
        self.enter("open", path)
        directory, name = self._place(path)
        node = directory.entries.get(name)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self.enter("create", path)
            node = _Inode()
            node.unlisted = True
            directory.link(name, node)
            self.done(f"create {path}")
        if not isinstance(node, _Inode):
            raise IsADirectoryError(errno.EISDIR, "a directory", path)
        return FaultyFile(self, path, node)

    def read_file(self, path: str) -> bytes:
        self.enter("read_file", path)
        return self._file(path).data

    def size(self, path: str) -> int:
        self.enter("size", path)
        return len(self._file(path).data)

    def modified_ms(self, path: str) -> int:
        """All files were written when time began."""
        self.size(path)
        return 0

    def at_once(self) -> nullcontext[None]:
        return nullcontext()  # it is all in memory

    def view(self, path: str) -> memoryview:
        self.enter("view", path)
        return memoryview(self._file(path).data)

    def write_file(self, path: str, data: bytes) -> None:
        self._write_beside(path, data)
        beside = self._file(path + ".tmp")
        beside.synced = beside.data
        self.done(f"sync {path}.tmp")
        self._rename_over(path)
        self.sync_directory(_parent(path))

    def put_file(self, path: str, data: bytes) -> None:
        self._write_beside(path, data)
        self._rename_over(path)

    def _rename_over(self, path: str) -> None:
        directory, name = self._place(path)
        directory.rename(f"{name}.tmp", name)
        self.done(f"rename {path}.tmp")

    def sync_below(self, path: str) -> None:
        self.enter("sync_below", path)
        node = self._find(path)
        if not isinstance(node, _Directory):
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        _sync_tree(node)
        self.done(f"sync below {path}")

    def _write_beside(self, path: str, data: bytes) -> None:
        self.enter("write_file", path)
        beside = path + ".tmp"
        directory, name = self._place(beside)
        room = self.room()
        if room is not None and len(data) > room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        node = directory.entries.get(name)
        if isinstance(node, _Inode):
            node.data = b""
        else:
            node = _Inode()
            directory.link(name, node)
        self.done(f"create {beside}")
        for size in self.tears(len(data)):
            node.data = data[:size]
            self.done(f"part of write {beside}")
        node.data = bytes(data)
        self.done(f"write {beside}")

    def map(self, path: str, size: int) -> memoryview:
        self.enter("map", path)
        directory, name = self._place(path)
        node = directory.entries.get(name)
        if node is None:
            node = _Inode()
            directory.link(name, node)
        assert isinstance(node, _Inode)
        mapped = bytearray(node.data.ljust(size, b"\0"))
        node.data = bytes(mapped)
        node.mapped = mapped
        self.done(f"map {path}")
        return memoryview(mapped)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def list(self, path: str) -> list[str]:
        self.enter("list", path)
        node = self._find(path)
        return sorted(node.entries) if isinstance(node, _Directory) else []

    def make_directory(self, path: str) -> None:
        self.enter("make_directory", path)
        node, at = self._root, ""
        for name in _parts(path):
            at = f"{at}/{name}"
            below = node.entries.get(name)
            if below is None:
                below = _Directory()
                node.link(name, below)
                self.done(f"make directory {at}")
            assert isinstance(below, _Directory)
            node = below

    def lock(self, path: str) -> None:
        """A process that is gone holds nothing: only `fault` makes it fail."""
        self.enter("lock", path)

    def unlock(self, path: str) -> None:
        pass

    def sync_directory(self, path: str) -> None:
        self.enter("sync_directory", path)
        node = self._find(path)
        if not isinstance(node, _Directory):
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        node.sync()
        self.done(f"sync directory {path}")

    def rename(self, old: str, new: str) -> None:
        self.enter("rename", old)
        directory, name = self._place(old)
        assert _parent(old) == _parent(new), "the door renames within a directory"
        if name not in directory.entries:
            raise FileNotFoundError(errno.ENOENT, "no such file", old)
        directory.rename(name, _name(new))
        self.done(f"rename {old}")

    def remove(self, path: str) -> None:
        self.enter("remove", path)
        directory = self._find(_parent(path))
        if isinstance(directory, _Directory) and _name(path) in directory.entries:
            directory.unlink(_name(path))
            self.done(f"remove {path}")

    def memory(self) -> str:
        return f"boot {self._boot}"

    def remove_tree(self, path: str) -> None:
        self.enter("remove_tree", path)
        node = self._find(path)
        if isinstance(node, _Directory):
            for name in sorted(node.entries):
                self.remove_tree(f"{path}/{name}")
        if node is not None:
            self._place(path)[0].unlink(_name(path))
            self.done(f"remove {path}")

    # --- the tree -----------------------------------------------------------------------------------------------------

    def _find(self, path: str) -> _Node | None:
        node: _Node | None = self._root
        for name in _parts(path):
            node = node.entries.get(name) if isinstance(node, _Directory) else None
        return node

    def _place(self, path: str) -> tuple[_Directory, str]:
        directory = self._find(_parent(path))
        if not isinstance(directory, _Directory):
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return directory, _name(path)

    def _file(self, path: str) -> _Inode:
        node = self._find(path)
        if not isinstance(node, _Inode):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return node


def _clone(node: _Node, known: dict[int, _Node]) -> _Node:
    if id(node) in known:
        return known[id(node)]
    if isinstance(node, _Inode):
        known[id(node)] = inode = _Inode(node.data, node.synced)
        return inode
    known[id(node)] = copy = _Directory()
    copy.entries = {name: _clone(below, known) for name, below in node.entries.items()}
    copy.synced = {name: _clone(below, known) for name, below in node.synced.items()}
    copy.pending = [(op, name, below and _clone(below, known)) for op, name, below in node.pending]
    return copy


def _survivor(node: _Node, how: str | Random, known: dict[int, _Node]) -> _Node:
    if id(node) in known:
        return known[id(node)]
    if isinstance(node, _Inode):
        data = _surviving_content(node, how) if isinstance(how, Random) else node.synced
        known[id(node)] = inode = _Inode(data, data)
        return inode
    changes = {STRICT: 0, NAMES_ONLY: len(node.pending)}.get(how) if isinstance(how, str) else None
    if changes is None:
        assert isinstance(how, Random), how
        changes = how.randint(0, len(node.pending))
    known[id(node)] = copy = _Directory()
    copy.entries = {name: _survivor(below, how, known) for name, below in node.surviving(changes).items()}
    copy.synced = dict(copy.entries)
    return copy


def _surviving_content(inode: _Inode, random: Random) -> bytes:
    data, synced = inode.data, inode.synced
    if data == synced:
        return synced
    if data[: len(synced)] != synced:  # it was cut
        return random.choice((data, synced))
    kind = random.randrange(5)
    if kind < 2:
        return synced if kind else data
    if kind < 3:
        return data[: random.randint(len(synced), len(data))]
    damaged = bytearray(data)
    for start in range(len(synced), len(data), _BLOCK):  # the length was written, and some of the blocks
        end = min(len(data), start + _BLOCK)
        if random.random() < 0.4:
            damaged[start:end] = bytes(end - start) if kind == 3 else random.randbytes(end - start)
    return bytes(damaged)


def _size(node: _Node) -> int:
    return len(node.data) if isinstance(node, _Inode) else sum(map(_size, node.entries.values()))


def _sync_tree(node: _Node) -> None:
    if isinstance(node, _Inode):
        node.synced, node.unlisted = node.data, False
    else:
        node.sync()
        for below in node.entries.values():
            _sync_tree(below)


def _paths(node: _Node, at: str) -> Iterable[str]:
    if isinstance(node, _Inode):
        yield at
    else:
        for name, below in node.entries.items():
            yield from _paths(below, f"{at}/{name}")


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _name(path: str) -> str:
    return path.rpartition("/")[2]
