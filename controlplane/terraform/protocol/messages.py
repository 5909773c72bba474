"""The generated messages, for everybody else. Checkers of types know nothing of them: they are made when they are imported."""

from __future__ import annotations

from typing import Any

from controlplane.terraform.protocol import goplugin_pb2, tfplugin6_pb2

tf: Any = tfplugin6_pb2
go: Any = goplugin_pb2
