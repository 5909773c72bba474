"""How Kafka's client in the JVM shows brokers, at their internal listeners, whose it is: its options, without ``kafka.``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def by_certificate(authorities: Path, key_and_certificate: Path) -> dict[str, str]:
    """Over TLS. The JVM reads the files itself, when a client is made."""
    return {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authorities),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(key_and_certificate),
    }


def by_credential(user: str, credential: str) -> dict[str, str]:
    """In plaintext."""
    secret = credential.replace("\\", "\\\\").replace('"', '\\"')
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{user}" password="{secret}";',
    }


def properties_text(options: Mapping[str, str]) -> str:
    """As a file of properties, which Java reads: it takes a backslash for the beginning of something."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in options.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
