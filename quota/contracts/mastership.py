"""Which master is active: the ephemeral node ``/sluice/master``, written by the one that won it (`quota.master.election`).

::

    {"epoch": 3, "http": "http://127.0.0.1:20031", "id": 1, "report": "127.0.0.1:20021"}

Brokers send their flow reports to ``report`` (``host:port``), the control plane asks at ``http`` (a URL). ``epoch`` is higher
than that of every mastership before. What is no address that one can connect to is not a mastership. Where the URL is one of
https, both speak TLS: ``report`` as well.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from quota.contracts.addresses import checked_address, checked_http
from quota.contracts.instance import ContractError, parse_address, to_bytes


@dataclass(frozen=True, slots=True)
class Mastership:
    """The content of the node."""

    id: int
    report: str
    http: str
    epoch: int

    @property
    def report_address(self) -> tuple[str, int]:
        """Host and port. Raises ContractError."""
        return parse_address(self.report)

    @property
    def is_secured(self) -> bool:
        """Whether it speaks TLS."""
        return self.http.startswith("https://")

    def to_json(self) -> bytes:
        """The document."""
        return to_bytes(asdict(self))

    @classmethod
    def from_json(cls, data: bytes) -> Mastership:
        """Raises ContractError. Members that it does not know are ignored."""
        try:
            document = json.loads(data)
            number, report, http, epoch = (document[name] for name in ("id", "report", "http", "epoch"))
        except (ValueError, KeyError, TypeError) as error:
            raise ContractError(f"master: {type(error).__name__}: {error}") from error
        for name, value in (("id", number), ("epoch", epoch)):
            if type(value) is not int:
                raise ContractError(f"master: {name} must be a whole number, not {value!r}")
        try:
            checked_address(report)
            return cls(number, report, checked_http(http), epoch)
        except ContractError as error:
            raise ContractError(f"master: report and http must be addresses: {error}") from error
