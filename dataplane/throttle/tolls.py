"""Which of an instance's buckets a request has to pass, by its kind.

==========================  =================================================================================
Produce                     bytes in; requests; loop time
Fetch                       bytes out; requests; loop time
JoinGroup, SyncGroup        what groups store; requests; loop time
OffsetCommit                what groups store; requests
TxnOffsetCommit             the same
InitProducerId, EndTxn,     what groups store: transactions of the instance pay with it; requests; loop time
Add…ToTxn, WriteTxnMarkers
Heartbeat                   requests: it counts, and never waits
ApiVersions, Sasl…          nothing: a connection introduces itself
everything else             requests; loop time
==========================  =================================================================================
"""

from __future__ import annotations

from dataplane.protocol.api import ApiKey
from quota.core.bucket import TokenBucket

BYTES_IN, BYTES_OUT, GROUP_BYTES, REQUEST_COUNT, LOOP_TIME, HEARTBEATS = range(6)
Toll = tuple[TokenBucket, int]
Tolls = tuple[Toll, ...]
"""Buckets, with what is charged to each."""

_OF_TRANSACTIONS = (
    int(ApiKey.INIT_PRODUCER_ID),
    int(ApiKey.ADD_PARTITIONS_TO_TXN),
    int(ApiKey.ADD_OFFSETS_TO_TXN),
    int(ApiKey.END_TXN),
    int(ApiKey.WRITE_TXN_MARKERS),
)
INTRODUCTIONS = (int(ApiKey.API_VERSIONS), int(ApiKey.SASL_HANDSHAKE), int(ApiKey.SASL_AUTHENTICATE))


def tolls_by_key(
    produce: TokenBucket | None,
    consume: TokenBucket | None,
    groups: TokenBucket | None,
    requests: TokenBucket | None,
    loop_time: TokenBucket | None,
) -> tuple[dict[int, Tolls], Tolls]:
    """Of the kinds of requests that have something of their own, and of all others. None: there is no such limit."""
    count = _toll(requests, REQUEST_COUNT)
    time = _toll(loop_time, LOOP_TIME)
    stored = _toll(groups, GROUP_BYTES)
    by_key = {
        int(ApiKey.PRODUCE): _toll(produce, BYTES_IN) + count + time,
        int(ApiKey.FETCH): _toll(consume, BYTES_OUT) + count + time,
        int(ApiKey.JOIN_GROUP): stored + count + time,
        int(ApiKey.SYNC_GROUP): stored + count + time,
        int(ApiKey.OFFSET_COMMIT): stored + count,
        int(ApiKey.TXN_OFFSET_COMMIT): stored + count,
        int(ApiKey.HEARTBEAT): _toll(requests, HEARTBEATS),
        int(ApiKey.CONSUMER_GROUP_HEARTBEAT): stored + _toll(requests, HEARTBEATS),  # it joins as well
    }
    by_key.update(dict.fromkeys(_OF_TRANSACTIONS, stored + count + time))
    by_key.update(dict.fromkeys(INTRODUCTIONS, ()))
    return by_key, count + time


def _toll(bucket: TokenBucket | None, kind: int) -> Tolls:
    return () if bucket is None else ((bucket, kind),)
