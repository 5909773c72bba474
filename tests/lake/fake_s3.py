"""As much of S3 as a copy needs: objects, multipart uploads, signatures (AWS4-HMAC-SHA256), its errors, and faults on demand.

A signature and the checksum of a body are computed here from what has arrived, so a request that S3 would refuse is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, quote, unquote, urlsplit

ACCESS_KEY, SECRET_KEY = "test", "test-secret"


class RefusedError(Exception):
    def __init__(self, status, code):
        self.status, self.code = status, code


class FakeS3:
    """`faults`: what the next requests are answered with, instead: (status, code), a location, or None for an answer as usual."""

    def __init__(self, bucket="events"):
        self.bucket = bucket
        self.objects = {}
        self.order = []  # of keys, as they appeared
        self.uploads = {}
        self.asked = []  # (method, path, query) of each request
        self.part_sizes = []
        self.faults = []
        self.denied = False
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"store": self}))
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, method, key, query, body):
        """The headers and the body, of status 200 or, after DELETE, 204."""
        upload = self.uploads.get(query.get("uploadId", ""))
        if "uploadId" in query and upload is None:
            raise RefusedError(404, "NoSuchUpload")
        match method:
            case "PUT" if upload is not None:
                self.part_sizes.append(len(body))
                upload[int(query["partNumber"])] = body
                return {"ETag": etag(body)}, b""
            case "PUT":
                self._appear(key, body)
                return {"ETag": etag(body)}, b""
            case "POST" if "uploads" in query:
                name = f"upload-{next(self._numbers)}"
                self.uploads[name] = {}
                return {}, xml("InitiateMultipartUploadResult", UploadId=name)
            case "POST" if upload is not None:
                named = re.findall(rb"<PartNumber>(\d+)</PartNumber>", body)
                tags = re.findall(r"[0-9a-f]{32}", body.decode())
                numbers = [int(number) for number in named]
                if [etag(upload[number]).strip('"') for number in numbers] != tags or numbers != sorted(numbers):
                    raise RefusedError(400, "InvalidPart")
                self._appear(key, b"".join(upload[number] for number in numbers))
                del self.uploads[query["uploadId"]]
                return {}, xml("CompleteMultipartUploadResult", Key=key)
            case "DELETE" if upload is not None:
                del self.uploads[query["uploadId"]]
                return {}, b""
        raise RefusedError(405, "MethodNotAllowed")

    def _appear(self, key, body):
        with self._lock:
            self.objects[key] = body
            self.order.append(key)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that was killed is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def handle_any(self):
        uri = urlsplit(self.path)
        query = dict(parse_qsl(uri.query, keep_blank_values=True))
        _, bucket, key = unquote(uri.path).split("/", 2)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.store.asked.append((self.command, uri.path, uri.query))
        try:
            fault = self.store.faults.pop(0) if self.store.faults else None
            if isinstance(fault, str):
                return self.send(307, {"Location": fault}, b"")
            if fault is not None:
                raise RefusedError(*fault)
            self.check(uri, body)
            if bucket != self.store.bucket:
                raise RefusedError(404, "NoSuchBucket")
            headers, content = self.store.answer(self.command, key, query, body)
        except RefusedError as refused:
            return self.send(refused.status, {}, xml("Error", Code=refused.code, Message="secret words of a store"))
        return self.send(204 if self.command == "DELETE" else 200, headers, content)

    do_PUT = do_POST = do_DELETE = do_GET = do_HEAD = handle_any  # noqa: N815  # as the base class names them

    def check(self, uri, body):
        """AWS Signature Version 4."""
        given = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})",
            self.headers.get("Authorization", ""),
        )
        if given is None:
            raise RefusedError(403, "AccessDenied")
        key, scope, names, signature = given.groups()
        if key != ACCESS_KEY or "x-amz-security-token" in self.headers:
            raise RefusedError(403, "InvalidAccessKeyId")
        if self.headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
            raise RefusedError(400, "XAmzContentSHA256Mismatch")
        query = "&".join(sorted(f"{quote(n, safe='-_.~')}={quote(v, safe='-_.~')}" for n, v in pairs(uri.query)))
        heads = "".join(f"{name}:{' '.join(self.headers[name].split())}\n" for name in names.split(";"))
        canonical = "\n".join((self.command, uri.path, query, heads, names, self.headers["x-amz-content-sha256"]))
        hashed = hashlib.sha256(canonical.encode()).hexdigest()
        text = "\n".join(("AWS4-HMAC-SHA256", self.headers["x-amz-date"], scope, hashed))
        signing = f"AWS4{SECRET_KEY}".encode()
        for word in (*scope.split("/"), text):
            signing = hmac.digest(signing, word.encode(), "sha256")
        if signing.hex() != signature:
            raise RefusedError(403, "SignatureDoesNotMatch")
        if self.store.denied:
            raise RefusedError(403, "AccessDenied")

    def send(self, status, headers, content):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def pairs(query):
    return parse_qsl(query, keep_blank_values=True)


def etag(body):
    return f'"{hashlib.md5(body).hexdigest()}"'


def xml(element, **members):
    inside = "".join(f"<{name}>{value}</{name}>" for name, value in members.items())
    return f'<?xml version="1.0" encoding="UTF-8"?><{element}>{inside}</{element}>'.encode()
