"""Settings: frozen dataclasses whose fields have the documents' names, with underscores for dots.

    ProducerConfig(broker_list="127.0.0.1:9092", batch_size=100)
    ProducerConfig.from_properties({"broker.list": "127.0.0.1:9092", "batch.size": "100"})

Both make the same value. In properties everything may be text, as in a file; a name that does not exist is refused, with
the nearest one that does. Kafka changed many names with 0.8 (`metadata.broker.list` for `broker.list`): those are
understood as well, each class says which.

`ConnectionSettings` is what all clients have: how they reach a broker, and as whom. Names of SASL and TLS are librdkafka's.
"""

from __future__ import annotations

import difflib
import importlib
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Self

from dataplane.clients.errors import ConfigurationError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
Address = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class ConnectionSettings:
    """How brokers are reached. Times are in milliseconds, as in the documents."""

    ALIASES: ClassVar[Mapping[str, str]] = {}

    client_id: str = "sluice-client"
    connect_timeout_ms: int = 10_000
    socket_timeout_ms: int = 30_000
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str = "PLAIN"
    sasl_username: str = ""
    sasl_password: str = field(default="", repr=False)
    ssl_ca_location: str = ""  # empty: the system's authorities
    ssl_certificate_location: str = ""
    ssl_key_location: str = ""

    def __post_init__(self) -> None:
        self.one_of("security_protocol", PROTOCOLS)
        self.one_of("sasl_mechanism", MECHANISMS)
        self.at_least("connect_timeout_ms", 1)
        self.at_least("socket_timeout_ms", 1)
        if self.has_sasl and not self.sasl_username:
            raise ConfigurationError("security.protocol has SASL, and sasl.username is missing")

    @property
    def has_tls(self) -> bool:
        return self.security_protocol.endswith("SSL")

    @property
    def has_sasl(self) -> bool:
        return self.security_protocol.startswith("SASL")

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """From dotted names. Raises ConfigurationError."""
        kinds = typing.get_type_hints(cls)
        known = {one.name.replace("_", "."): one.name for one in fields(cls)}
        values: dict[str, Any] = {}
        for given, value in properties.items():
            name = cls.ALIASES.get(given, given)
            if name not in known:
                raise ConfigurationError(_unknown(given, [*known, *cls.ALIASES]))
            if known[name] in values:
                raise ConfigurationError(f"{given} is the same setting as another one that is given")
            values[known[name]] = _parsed(given, value, kinds[known[name]])
        needed = [one.name for one in fields(cls) if one.default is MISSING and one.default_factory is MISSING]
        missing = [name.replace("_", ".") for name in needed if name not in values]
        if missing:
            raise ConfigurationError(f"{' and '.join(missing)} must be set")
        return cls(**values)

    # --- what values may be -------------------------------------------------------------------------------------------

    def one_of(self, name: str, allowed: tuple[Any, ...]) -> None:
        """Raises ConfigurationError."""
        value = getattr(self, name)
        if value not in allowed:
            told = ", ".join(map(str, allowed))
            raise ConfigurationError(f"{name.replace('_', '.')} is one of {told}, not {value!r}")

    def at_least(self, name: str, least: int) -> None:
        """Raises ConfigurationError."""
        value = getattr(self, name)
        if value < least:
            raise ConfigurationError(f"{name.replace('_', '.')} is at least {least}, not {value}")


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, 1, 0.6)
    return f"there is no setting {name}" + (f": is it {near[0]}?" if near else "")


def _parsed(name: str, value: Any, kind: Any) -> Any:
    """Text as what the field is. Other values are taken as they are."""
    if not isinstance(value, str):
        return value
    kinds = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    if str in kinds:
        return value
    if bool in kinds:
        if value.lower() not in _BOOLEANS:
            raise ConfigurationError(f"{name} is true or false, not {value!r}")
        return _BOOLEANS[value.lower()]
    if int in kinds:
        try:
            return int(value)
        except ValueError:
            raise ConfigurationError(f"{name} is a whole number, not {value!r}") from None
    return value


def addresses(text: str, name: str = "broker.list") -> list[Address]:
    """Of `host:port,host:port`. Kafka 0.7 has an id before each, which is read over. Raises ConfigurationError."""
    found = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        host, _, port = part.rpartition(":")
        number, colon, rest = host.partition(":")
        if colon and number.isdecimal() and not host.startswith("["):
            host = rest
        if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
            raise ConfigurationError(f"{name} is host:port,host:port, not {text!r}")
        found.append((host.strip("[]"), int(port)))
    if not found:
        raise ConfigurationError(f"{name} names no broker")
    return found


def named(name: str, value: Any, known: Mapping[str, Any]) -> Any:
    """What a setting such as `partitioner.class` means: a short name of ours, `module:Class`, or the thing itself.

    A class is made without arguments. Raises ConfigurationError.
    """
    if isinstance(value, str):
        module, colon, attribute = value.partition(":")
        if value in known:
            value = known[value]
        elif colon:
            try:
                value = getattr(importlib.import_module(module), attribute)
            except (ImportError, AttributeError) as error:
                raise ConfigurationError(f"{name}: {error}") from error
        else:
            raise ConfigurationError(f"{name} is module:Class or one of {', '.join(known)}, not {value!r}")
    return value() if isinstance(value, type) else value
