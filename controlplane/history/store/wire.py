"""What is sent to a store: one `WriteRequest` of remote write 1.0, compressed by Snappy's block format. Pure.

The messages are those of https://prometheus.io/docs/specs/prw/remote_write_spec/ (`prompb/types.proto`), the four fields that are
needed of each. They are described here, and not in a .proto file, so that nothing has to be generated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import cramjam
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

if TYPE_CHECKING:
    from collections.abc import Iterable

HEADERS = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
MS = 1000
_FIELD = descriptor_pb2.FieldDescriptorProto
_ONE, _MANY = _FIELD.LABEL_OPTIONAL, _FIELD.LABEL_REPEATED
_PACKAGE = "prometheus"
_MESSAGES: dict[str, tuple[tuple[str, int, int, str], ...]] = {
    "Label": (("name", _ONE, _FIELD.TYPE_STRING, ""), ("value", _ONE, _FIELD.TYPE_STRING, "")),
    "Sample": (("value", _ONE, _FIELD.TYPE_DOUBLE, ""), ("timestamp", _ONE, _FIELD.TYPE_INT64, "")),
    "TimeSeries": (
        ("labels", _MANY, _FIELD.TYPE_MESSAGE, "Label"),
        ("samples", _MANY, _FIELD.TYPE_MESSAGE, "Sample"),
    ),
    "WriteRequest": (("timeseries", _MANY, _FIELD.TYPE_MESSAGE, "TimeSeries"),),
}
"""Fields in the order of their numbers, which begin with 1."""


class Point(NamedTuple):
    """One value of a series. `labels` by name, with the metric's as ``__name__``."""

    labels: tuple[tuple[str, str], ...]
    value: float


def _write_request() -> Any:
    """The class of the message, in a pool of its own: others may know messages of the same names."""
    file = descriptor_pb2.FileDescriptorProto(name="sluice/remote_write.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, (called, label, kind, of) in enumerate(fields, 1):
            field = message.field.add(name=called, number=number, label=label, type=kind)
            if of:
                field.type_name = f".{_PACKAGE}.{of}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.WriteRequest"))


WriteRequest: Any = _write_request()


def body_of(points: Iterable[Point], at_s: int) -> bytes:
    """All of one moment, in seconds since 1970. A series occurs once."""
    request = WriteRequest()
    for point in points:
        series = request.timeseries.add()
        for name, value in sorted(point.labels):  # stores ask for this order
            series.labels.add(name=name, value=value)
        series.samples.add(value=point.value, timestamp=at_s * MS)
    return bytes(cramjam.snappy.compress_raw(request.SerializeToString()))
