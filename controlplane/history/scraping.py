"""What a tenant's Prometheus is told, so that it reads an instance's figures: the address, and a configuration to paste. Pure."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

INTERVAL_S = 15
KEY_FILE = "/etc/prometheus/sluice-api-key"
"""Where the configuration looks for the API key: in a file of its own, so that the configuration may be shown to anybody."""
_CONFIG = """\
scrape_configs:
  - job_name: sluice-{instance}
    scheme: {scheme}
    metrics_path: {path}
    scrape_interval: {interval_s}s
{proof}    static_configs:
      - targets: ["{target}"]
"""


BY_KEY, BY_CERTIFICATE = WAYS = ("key", "certificate")
_PROOFS = {
    BY_KEY: f"""\
    authorization:
      credentials_file: {KEY_FILE}
""",
    BY_CERTIFICATE: """\
    tls_config:
      cert_file: /etc/prometheus/sluice-client.pem
      key_file: /etc/prometheus/sluice-client.key
      # ca_file: /etc/prometheus/sluice-ca.pem  # only where no public authority has issued the certificate of this address
""",
}
"""Of who asks, by what they show."""


class Scraping(NamedTuple):
    """The one address of an instance's metrics, and the configuration that reads it."""

    url: str
    config: str


def scraping_of(base: str, instance_id: str, by: str = BY_KEY) -> Scraping:
    """`base` is where this service is reached, such as ``https://kafka.example.com``, with a path before ours or without.

    `by` is one of WAYS.
    """
    base = base.rstrip("/")
    path = f"/api/v1/instances/{instance_id}/prometheus"
    parts = urlsplit(base)
    config = _CONFIG.format(
        instance=instance_id,
        scheme=parts.scheme,
        path=f"{parts.path}{path}",
        interval_s=INTERVAL_S,
        proof=_PROOFS[by],
        target=parts.netloc,
    )
    return Scraping(f"{base}{path}", config)
