"""A bucket as far as a reader of tables needs one: objects of a folder, by S3's GET, HEAD and list, for whoever has the key."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUCKET, KEY = "lake", "AKIATEST"
DATE = "Mon, 02 Nov 2026 10:00:00 GMT"


class Bucket:
    """`root` holds the objects. What was asked for is in `asked`, with how many bytes were sent."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.asked: list[tuple[str, int]] = []
        self.endpoint = ""
        self.holds = threading.Event()  # set: nothing is answered

    def keys(self, prefix: str) -> list[str]:
        files = (each for each in self.root.rglob("*") if each.is_file())
        return sorted(key for key in (str(each.relative_to(self.root)) for each in files) if key.startswith(prefix))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: Bucket
    over: threading.Event

    def log_message(self, *_words: object) -> None:
        return

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if self.bucket.holds.is_set():
            self.over.wait(30)
            return
        parts = urlsplit(self.path)
        _, bucket, *names = unquote(parts.path).split("/", 2)
        if f"Credential={KEY}/" not in self.headers.get("Authorization", ""):
            self._send(403, b"<Error><Code>InvalidAccessKeyId</Code></Error>")
        elif bucket != BUCKET:
            self._send(404, b"<Error><Code>NoSuchBucket</Code></Error>")
        elif not names or not names[0]:
            self._list(parse_qs(parts.query))
        else:
            self._object(names[0])

    def _list(self, query: dict[str, list[str]]) -> None:
        keys = self.bucket.keys(query.get("prefix", [""])[0])
        after = query.get("start-after", [""])[0]
        found = [
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-11-02T10:00:00.000Z</LastModified><ETag>a</ETag>"
            f"<Size>{(self.bucket.root / key).stat().st_size}</Size></Contents>"
            for key in keys
            if key > after
        ]
        body = f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(found)}</ListBucketResult>"
        self._send(200, body.encode())

    def _object(self, key: str) -> None:
        path = self.bucket.root / key
        if not path.is_file():
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        content, headers, status = path.read_bytes(), {"ETag": "a", "Last-Modified": DATE}, 200
        asked = self.headers.get("Range", "")
        if asked.startswith("bytes="):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            begin = int(first) if first else len(content) - int(last)
            end = int(last) + 1 if first and last else len(content)
            headers["Content-Range"] = f"bytes {begin}-{min(end, len(content)) - 1}/{len(content)}"
            content, status = content[begin:end], 206
        self.bucket.asked.append((key, len(content)))
        self._send(status, content, headers)

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def serving(root: Path) -> Iterator[Bucket]:
    bucket, over = Bucket(root), threading.Event()
    handler = type("Handler", (_Handler,), {"bucket": bucket, "over": over})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    bucket.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield bucket
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()
