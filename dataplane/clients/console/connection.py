"""How the console's clients are configured: the address, a file of properties, and single ones, the later the stronger."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from dataplane.clients.console.failures import USAGE, Failure

Config = dict[str, str | int | float | bool]


def configuration(arguments: Namespace) -> Config:
    """For any client of librdkafka, whose names properties have. Raises Failure."""
    found: Config = {"log_level": 0, "client.id": "sluice-console", "socket.timeout.ms": int(arguments.timeout * 1000)}
    if arguments.command_config is not None:
        found |= pairs(_lines(arguments.command_config), "a line of the file")
    found |= pairs(arguments.property, "--property")
    found["bootstrap.servers"] = arguments.bootstrap_server
    return found


def pairs(texts: Sequence[str], what: str) -> dict[str, str]:
    """`name=value` each. Raises Failure."""
    found = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise Failure(f"{what} must be NAME=VALUE, not {text!r}", USAGE)
        found[name.strip()] = value.strip()
    return found


def _lines(path: str) -> list[str]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{path} cannot be read: {error}", USAGE) from error
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
