"""Who is connected to an instance here: an API of our own, by which the control plane asks each broker.

Declarations only; see `dataplane.protocol.schema`. What came lately is told as bytes (or requests) and the time in which they
came.
"""

from __future__ import annotations

from dataplane.protocol.schema import array, int16, int32, int64, message, string, struct, structure


@message(api_key=20_001, versions="0", flexible="0+")
class DescribeConnectionsRequest:
    instance_id: str = string()
    topic: str | None = string(nullable="0+", default=None, entity="topic")  # talkers of this one only
    most_connections: int = int32()  # rows; 0: they are not asked for, nor who was refused
    most_talkers: int = int32()  # likewise


@struct
class ConnectionRow:
    client_id: str = string()
    software_name: str = string()  # empty where the client has not said it
    software_version: str = string()
    address: str = string()
    principal: str = string()  # empty where nobody has logged in yet
    route_id: str = string()
    opened_ms: int = int64()  # of the wall's clock
    window_ms: int = int64()
    received_bytes: int = int64()  # in the window; so the other two
    sent_bytes: int = int64()
    requests: int = int64()


@struct
class RefusedConnectionRow:
    address: str = string()
    route_id: str = string()
    reason: str = string()  # quota.contracts.refused
    count: int = int64()
    last_ms: int = int64()  # of the wall's clock
    # Of the last of them; who was written before these passes them over.
    user: str = string(tagged="0+", tag=0)  # that it tried to log in as; empty: not known
    client_id: str = string(tagged="0+", tag=1)  # empty where it has said none


@struct
class TalkerRow:
    client_id: str = string()
    address: str = string()
    topic: str = string(entity="topic")
    window_ms: int = int64()
    produced_bytes: int = int64()  # in the window, of records; so the other
    consumed_bytes: int = int64()


@struct
class FlowOfTheRest:
    """Rows that are not told: how many, and per second what they move together."""

    count: int = int64()
    in_bytes_per_s: int = int64()
    out_bytes_per_s: int = int64()
    requests_per_s: int = int64()


@message(api_key=20_001, versions="0", flexible="0+")
class DescribeConnectionsResponse:
    error_code: int = int16()
    connections: tuple[ConnectionRow, ...] = array(ConnectionRow)
    other_connections: FlowOfTheRest = structure(FlowOfTheRest)
    refused: tuple[RefusedConnectionRow, ...] = array(RefusedConnectionRow)
    other_refused: int = int64()
    talkers: tuple[TalkerRow, ...] = array(TalkerRow)
    other_talkers: FlowOfTheRest = structure(FlowOfTheRest)
