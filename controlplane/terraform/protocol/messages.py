"""The messages, made of the files beside this one when they are imported (0.2 s): checkers of types know nothing of them."""

from __future__ import annotations

from typing import Any

import grpc

_FOLDER = "controlplane/terraform/protocol"
tf: Any = grpc.protos(f"{_FOLDER}/tfplugin6.proto")
go: Any = grpc.protos(f"{_FOLDER}/goplugin.proto")
