"""A metrics store that a test runs itself: remote write decoded byte by byte, and the questions of `store.series` answered.

It refuses what Prometheus refuses (samples of a series out of order, other values at the same moment, samples more than an hour
behind the newest) and takes again what it has. Windows have both edges, as those of Prometheus 2.
"""

from __future__ import annotations

import json
import re
import struct
import threading
from bisect import bisect_left, bisect_right
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import cramjam

BEHIND_MS = 3_600_000
_PART = re.compile(r'(sum|max|last)_over_time\((\w+)\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\}\[(\d+)s\]\)')
_PAIR = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*")')
_PUT_TOGETHER = {"sum": sum, "max": max, "last": lambda values: values[-1]}


class Refused(Exception):  # noqa: N818  # as the client calls it
    """400."""


class FakeStore:
    """`url` is what METRICS_URL says. `answers` is the status of everything but what is taken; None: it works."""

    def __init__(self):
        self.series = {}  # by sorted labels: {milliseconds: value}
        self.answers = None
        self.loses_answers = False
        self.writes, self.queries, self.seen, self.problems = [], [], [], []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                fake.seen.append((self.path, dict(self.headers)))
                try:
                    status, text = fake.answer(self.path, dict(self.headers), body)
                except Refused as error:
                    status, text = 400, str(error)
                except Exception as error:
                    fake.problems.append(error)
                    raise
                if fake.loses_answers and status == 204:
                    fake.loses_answers = False
                    self.close_connection = True
                    return
                self.send_response(status)
                if status == 307:
                    self.send_header("Location", text)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
        assert self.problems == []

    def answer(self, path, headers, body):
        if self.answers:
            return self.answers, f"{self.url}/elsewhere" if self.answers == 307 else "away"
        if path.endswith("/api/v1/write"):
            assert headers["Content-Type"] == "application/x-protobuf"
            assert headers["Content-Encoding"] == "snappy"
            assert headers["X-Prometheus-Remote-Write-Version"] == "0.1.0"
            self.take(decoded(bytes(cramjam.snappy.decompress_raw(body))))
            return 204, ""
        if path.endswith("/api/v1/query_range"):
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            return 200, json.dumps(self.matrix(form))
        return 404, "there is nothing at this address"

    def take(self, request):
        """All of it or nothing."""
        newest = max((max(samples) for samples in self.series.values()), default=0)
        for labels, samples in request:
            assert labels == sorted(labels)
            assert len({name for name, _ in labels}) == len(labels)
            mine = self.series.get(tuple(labels), {})
            last = max(mine, default=0)
            for at, value in samples:
                if at < newest - BEHIND_MS:
                    raise Refused("out of bounds")
                if at < last or (at == last and mine[at] != value):
                    raise Refused("out of order sample")
        for labels, samples in request:
            self.series.setdefault(tuple(labels), {}).update(samples)
        self.writes.append(request)

    def matrix(self, form):
        self.queries.append(form["query"])
        start, end, step = (int(form[name]) for name in ("start", "end", "step"))
        parts = _PART.findall(form["query"])
        assert (
            " or ".join(f"{over}_over_time({name}{{{labels}}}[{s}s])" for over, name, labels, s in parts)
            == form["query"]
        )
        asked = []
        for over, name, labels, range_s in parts:
            wanted = {key: json.loads(value) for key, value in _PAIR.findall(labels)}
            assert labels == ",".join(f"{key}={quoted}" for key, quoted in _PAIR.findall(labels))
            asked.append((_PUT_TOGETHER[over], int(range_s) * 1000, self._selected(name, wanted)))
        found = {}
        for at in range(start, end + 1, step):
            here = {}
            for put_together, range_ms, selected in asked:
                mine = {}
                for label_set, moments, samples in selected:
                    within = moments[bisect_left(moments, at * 1000 - range_ms) : bisect_right(moments, at * 1000)]
                    if within:
                        assert label_set not in mine, "vector cannot contain metrics with the same labelset"
                        mine[label_set] = put_together([samples[ms] for ms in within])
                here = {**mine, **here}
            for key, value in here.items():
                found.setdefault(key, []).append([at, "+Inf" if value == float("inf") else repr(value)])
        result = [{"metric": dict(key), "values": values} for key, values in found.items()]
        return {"status": "success", "data": {"resultType": "matrix", "result": result}}

    def _selected(self, name, wanted):
        """(labels without the name, moments, values by them) of each series."""
        found = []
        for key, samples in self.series.items():
            ours = dict(key)
            if ours.pop("__name__") == name and all(ours.get(each, "") == value for each, value in wanted.items()):
                found.append((tuple(sorted(ours.items())), sorted(samples), samples))
        return found


def decoded(data):
    """A WriteRequest as [(labels, [(milliseconds, value)])], by the wire format alone."""
    return [_series(part) for number, part in fields(data) if number == 1]


def _series(data):
    labels, samples = [], []
    for number, part in fields(data):
        inner = dict(fields(part))
        if number == 1:
            labels.append((inner[1].decode(), inner.get(2, b"").decode()))
        else:
            assert number == 2
            samples.append((inner.get(2, 0), inner.get(1, 0.0)))
    return labels, samples


def fields(data):
    """(number, value) of each field."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        if tag & 7 == 0:
            value, place = _varint(data, place)
        elif tag & 7 == 1:
            (value,) = struct.unpack_from("<d", data, place)
            place += 8
        else:
            assert tag & 7 == 2
            length, place = _varint(data, place)
            value = data[place : place + length]
            place += length
        yield tag >> 3, value


def _varint(data, place):
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
