"""Delta tables in a folder, made by hand: logs of JSON, and files of which only the bytes matter."""

from __future__ import annotations

import json
from urllib.parse import quote

PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


class FolderTable:
    def __init__(self, folder):
        self.folder = folder
        self.uri = f"file:{folder}"
        self.log = folder / "_delta_log"
        self.log.mkdir(parents=True)
        self.live = [set()]  # before version 0, then by version + 1
        self._files = 0

    @property
    def newest(self):
        return len(self.live) - 2

    def live_at(self, version):
        return self.live[version + 1]

    def commit(self, *, add=(), remove=(), actions=()):
        version = self.newest + 1
        lines = [] if version else [PROTOCOL]
        lines += [{"add": {"path": quote(path), "size": 1, "dataChange": True}} for path in add]
        lines += [{"remove": {"path": quote(path), "dataChange": True}} for path in remove]
        lines += [{"commitInfo": {"operation": "WRITE", "version": version}}, *actions]
        for path in add:
            self.write(path, f"data of {path}".encode())
        self.write(log(version), "".join(json.dumps(line) + "\n" for line in lines).encode())
        self.live.append(self.live[-1] - set(remove) | set(add))
        return version

    def new_file(self):
        self._files += 1
        return f"part-{self._files:05}.parquet"

    def checkpoint(self, parts=1):
        version = self.newest
        names = [f"{version:020}.checkpoint.parquet"]
        if parts > 1:
            names = [f"{version:020}.checkpoint.{part:010}.{parts:010}.parquet" for part in range(1, parts + 1)]
        for name in names:
            self.write(f"_delta_log/{name}", f"checkpoint {name}".encode())
        self.write("_delta_log/_last_checkpoint", json.dumps({"version": version, "size": 1}).encode())

    def vacuum(self):
        """As of retention 0: what the newest version does not have."""
        for path in {path for live in self.live for path in live} - self.live[-1]:
            (self.folder / path).unlink(missing_ok=True)

    def write(self, path, content):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    def everything(self):
        """All that a copy should have, by path."""
        kept = (path for path in self.folder.rglob("*") if path.is_file())
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in kept}


def log(version):
    return f"_delta_log/{version:020}.json"
