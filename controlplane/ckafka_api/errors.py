"""Refusals in the vendor's codes, and how the service's own errors become them: the one mapping."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from controlplane.core import errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controlplane.core.errors import SluiceError


class Code(StrEnum):
    """Those of the SDK's `errorcodes.py` that are used here."""

    AUTH_FAILURE = "AuthFailure"
    DRY_RUN = "DryRunOperation"
    FAILED = "FailedOperation"
    INTERNAL = "InternalError"
    INVALID_FILTER = "InvalidFilter"
    INVALID_PARAMETER = "InvalidParameter"
    INVALID_VALUE = "InvalidParameterValue"
    NO_INSTANCE = "InvalidParameterValue.InstanceNotExist"
    TOPIC_EXISTS = "InvalidParameterValue.TopicNameAlreadyExist"
    WRONG_ACTION = "InvalidParameterValue.WrongAction"
    NO_ZONE = "InvalidParameterValue.ZoneNotSupport"
    LIMIT_EXCEEDED = "LimitExceeded"
    MISSING_PARAMETER = "MissingParameter"
    DENIED = "OperationDenied"
    TOO_MANY_REQUESTS = "RequestLimitExceeded"
    IN_USE = "ResourceInUse"
    INSUFFICIENT = "ResourceInsufficient"
    NOT_FOUND = "ResourceNotFound"
    UNAVAILABLE = "ResourceUnavailable"
    UNAUTHORIZED = "UnauthorizedOperation"
    UNKNOWN_PARAMETER = "UnknownParameter"
    UNSUPPORTED = "UnsupportedOperation"


class CkafkaError(Exception):
    """What is answered in place of a result."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


# The first that fits counts: the nearer ones stand before those they descend from.
_CODES: Sequence[tuple[type[SluiceError], Code]] = (
    (errors.Invalid, Code.INVALID_VALUE),
    (errors.Unauthenticated, Code.AUTH_FAILURE),
    (errors.Forbidden, Code.UNAUTHORIZED),
    (errors.NotFound, Code.NOT_FOUND),
    (errors.AlreadyExists, Code.TOPIC_EXISTS),
    (errors.LimitReached, Code.LIMIT_EXCEEDED),
    (errors.OrganisationCapReached, Code.LIMIT_EXCEEDED),
    (errors.CapacityExhausted, Code.INSUFFICIENT),
    (errors.ConcurrentChange, Code.IN_USE),
    (errors.Conflict, Code.DENIED),
    (errors.TooManyAttempts, Code.TOO_MANY_REQUESTS),
    (errors.BandwidthUsedUp, Code.TOO_MANY_REQUESTS),
    (errors.Unsupported, Code.UNSUPPORTED),
    (errors.Unavailable, Code.UNAVAILABLE),
)


def ckafka_error(error: SluiceError) -> CkafkaError:
    """An error of the service as the vendor's programs know it."""
    code = next((code for kind, code in _CODES if isinstance(error, kind)), Code.INTERNAL)
    return CkafkaError(code, error.detail)
