"""Our messages in Kafka's own JSON, the one its tools print: camel-case names, bytes in base64, ids in URL-safe base64.

A tagged field that has its default is left out, as Kafka does; every other field of the version is there.
"""

import base64
import re
from uuid import UUID

from dataplane.protocol.schema import Wire, wires


def camel_case(name):
    """`v3_and_below_topics` -> `v3AndBelowTopics`."""
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


def to_json(message, version):
    return {
        camel_case(name): _out(getattr(message, name), wire.kind, wire.element, version)
        for name, wire, default in wires(type(message))
        if (version in wire.tagged and getattr(message, name) != default)
        or (version in wire.versions and version not in wire.tagged)
    }


def from_json(cls, version, node):
    fields = {camel_case(name): (name, wire) for name, wire, _ in wires(cls)}
    arguments = {}
    for key, value in node.items():
        name, wire = fields[key]
        arguments[name] = _in(value, wire.kind, wire.element, version)
    return cls(**arguments)


def _out(value, kind, element, version):
    if value is None:
        return None
    if kind == "array" and isinstance(element, Wire):
        return [_out(item, element.kind, None, version) for item in value]
    if kind == "array":
        return [to_json(item, version) for item in value]
    if kind == "struct":
        return to_json(value, version)
    if kind in ("bytes", "records"):
        return base64.b64encode(value).decode()
    if kind == "uuid":
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    return value


def _in(node, kind, element, version):
    if node is None:
        return None
    if kind == "array" and isinstance(element, Wire):
        return tuple(_in(item, element.kind, None, version) for item in node)
    if kind == "array":
        return tuple(from_json(element, version, item) for item in node)
    if kind == "struct":
        return from_json(element, version, node)
    if kind in ("bytes", "records"):
        return base64.b64decode(node)
    if kind == "uuid":
        return UUID(bytes=base64.urlsafe_b64decode(node + "=="))
    return node
