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
    authorization:
      credentials_file: {key_file}
    static_configs:
      - targets: ["{target}"]
"""


class Scraping(NamedTuple):
    """The one address of an instance's metrics, and the configuration that reads it."""

    url: str
    config: str


def scraping_of(base: str, instance_id: str) -> Scraping:
    """`base` is where this service is reached, such as ``https://kafka.example.com``, with a path before ours or without."""
    base = base.rstrip("/")
    path = f"/api/v1/instances/{instance_id}/prometheus"
    parts = urlsplit(base)
    config = _CONFIG.format(
        instance=instance_id,
        scheme=parts.scheme,
        path=f"{parts.path}{path}",
        interval_s=INTERVAL_S,
        key_file=KEY_FILE,
        target=parts.netloc,
    )
    return Scraping(f"{base}{path}", config)
