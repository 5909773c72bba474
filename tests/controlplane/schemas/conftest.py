"""Alice's topic `orders`, whose messages get schemas."""

from __future__ import annotations

from tests.controlplane.messages.conftest import address, orders

__all__ = ["address", "orders"]
