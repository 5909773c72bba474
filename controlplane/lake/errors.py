"""What can be wrong with a load. The text is for whoever started it; the exit status is for programs.

::

    LakeError                 1   anything else: brokers away, destination refuses, Spark fails
     ├─ RequestError          2   what was asked for makes no sense for this topic or table
     │   └─ SchemaError       9   a schema that cannot be, or is not the table's
     ├─ AnotherTopicError     3   the topic was deleted and made again (--new-topic)
     ├─ ExpiredError          4   records expired before they were loaded (--skip-expired)
     ├─ ShorterTopicError     5   the topic ends before the table does
     ├─ OvertakenError        6   another load wrote to the table at the same time: start again
     └─ NoBucketError         8   there is no bucket of this name to copy the table into

7 is `verify`'s: table and topic differ.
"""

from __future__ import annotations


class LakeError(Exception):
    """A load that cannot begin or go on."""

    exit_status = 1


class RequestError(LakeError):
    """A range outside of the topic, words that make no sense."""

    exit_status = 2


class SchemaError(RequestError):
    """Types that are not known here, nothing to infer them from, or another schema than the table has."""

    exit_status = 9


class AnotherTopicError(LakeError):
    """The table was loaded from a topic of the same name and another id."""

    exit_status = 3


class ExpiredError(LakeError):
    """Retention or DeleteRecords was there first."""

    exit_status = 4


class ShorterTopicError(LakeError):
    """The table has offsets that the topic does not reach: it has lost its end, or is not the one that was loaded."""

    exit_status = 5


class OvertakenError(LakeError):
    """The table is not as it was when this load began. Nothing of this commit was written."""

    exit_status = 6


class NoBucketError(LakeError):
    """No key helps: somebody has to make the bucket, or the table goes elsewhere."""

    exit_status = 8
