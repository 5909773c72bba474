"""How many bytes lie from an offset on: an API of our own, by which the control plane asks each broker. See `protocol.schema`."""

from __future__ import annotations

from dataplane.protocol.schema import array, int16, int32, int64, message, string, struct


@struct
class BacklogPartition:
    partition: int = int32()
    offsets: tuple[int, ...] = array("int64")


@struct
class BacklogTopic:
    topic: str = string(entity="topic")
    partitions: tuple[BacklogPartition, ...] = array(BacklogPartition)


@message(api_key=20_002, versions="0", flexible="0+")
class DescribeBacklogsRequest:
    topics: tuple[BacklogTopic, ...] = array(BacklogTopic)


@struct
class BacklogPartitionResult:
    partition: int = int32()
    error_code: int = int16()
    sizes: tuple[int, ...] = array("int64")  # bytes, in the order of the offsets; none where there is an error
    high_watermark: int = int64(default=-1)  # up to which they are counted


@struct
class BacklogTopicResult:
    topic: str = string(entity="topic")
    partitions: tuple[BacklogPartitionResult, ...] = array(BacklogPartitionResult)


@message(api_key=20_002, versions="0", flexible="0+")
class DescribeBacklogsResponse:
    topics: tuple[BacklogTopicResult, ...] = array(BacklogTopicResult)
