"""Which records are refused, each with a sentence. A bad record is counted and kept aside; it never stops the job."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from quota.contracts.usage import (
    COMPLETE,
    COMPLETE_VERSION,
    COUNTERS,
    INSTANCE,
    INSTANCE_COUNTERS,
    LONGEST_USER,
    USER,
    USER_COUNTERS,
    VERSION,
)

# `\z`: before `$` there may be a line's end.
HOUR = r"^[12]\d{3}-\d{2}-\d{2}T\d{2}:00:00Z\z"
INSTANCE_ID = r"^ins-[a-z0-9]{8}\z"
LONGEST_TOPIC = 249
LONGEST_BOOT = 64
LONGEST_CLUSTER = 64
LONGEST_ID = 36
BOOT = r"^[0-9a-f]{1,16}\z"
MOST_BOOTS = 1000
MOST_BYTES = 2**60
"""Of one topic since a broker's boot: a year at 36 GB/s. Beyond it is what a damaged counter says."""


def problem_of(raw: str, parsed: str, cluster: str | None = None) -> Column:
    """Why a record will not do, null for a good one. `raw` is the column of the text, `parsed` of its struct.

    `cluster`: whose topic it was read from; None: not known. A record that names another is refused, one that names none is not.
    """

    def member(name: str) -> Column:
        return F.col(f"{parsed}.{name}")

    def refuse(condition: Column, sentence: str) -> Column:
        return F.when(condition, F.lit(sentence))

    def length_outside(name: str, most: int) -> Column:
        return (F.length(F.coalesce(member(name), F.lit(""))) == 0) | unfit(name, most)

    def unfit(name: str, most: int) -> Column:
        """Longer, or with NUL, which PostgreSQL does not take."""
        text = F.coalesce(member(name), F.lit(""))
        return (F.length(text) > most) | text.contains("\0")

    def is_of_another(own: str) -> Column:
        return ~F.coalesce(member("cluster"), F.lit("")).isin("", own)

    is_complete, is_instance, is_user = (member("kind") == kind for kind in (COMPLETE, INSTANCE, USER))
    lacks_any = member("cluster").isNull() | member("topic_id").isNull()
    is_no_instance = refuse(
        ~F.coalesce(member("instance").rlike(INSTANCE_ID), F.lit(False)), "instance is not an instance id"
    )
    of_all = (
        refuse(length_outside("boot", LONGEST_BOOT), "boot is not a boot id"),
        refuse(
            ~F.coalesce(member("hour").rlike(HOUR), F.lit(False)) | F.try_to_timestamp(member("hour")).isNull(),
            "hour is not the beginning of a UTC hour",
        ),
        refuse(member("broker").isNull(), "broker is not a number"),
        refuse(unfit("cluster", LONGEST_CLUSTER), "cluster is not a cluster's name"),
        *(
            []
            if cluster is None
            else [refuse(is_of_another(cluster), f"cluster is not {cluster}, whose topic it is in")]
        ),
    )
    of_usage = F.coalesce(
        refuse(member("kind").isNotNull(), "a kind that is not known"),
        refuse(member("version") > VERSION, f"a version newer than {VERSION}"),
        is_no_instance,
        refuse(length_outside("topic", LONGEST_TOPIC), "topic is not a topic name"),
        refuse((member("version") > 1) & lacks_any, "cluster or topic_id is missing"),
        refuse(unfit("topic_id", LONGEST_ID), "topic_id is not a topic's UUID"),
        *of_all,
        *(refuse(~F.coalesce(member(name) >= 0, F.lit(False)), f"{name} is not a count of bytes") for name in COUNTERS),
        *(
            refuse(member(name) >= MOST_BYTES, f"{name} is more than a broker can have counted")
            for name in ("produced_bytes", "consumed_bytes")
        ),
    )

    def of_wire(*more: Column, counters: Sequence[str]) -> Column:
        return F.coalesce(
            refuse(member("version") > VERSION, f"a version newer than {VERSION}"),
            is_no_instance,
            *more,
            *of_all,
            *(
                refuse(~F.coalesce(member(name).between(0, MOST_BYTES - 1), F.lit(False)), f"{name} is not a count")
                for name in counters
            ),
        )

    of_instance = of_wire(counters=INSTANCE_COUNTERS)
    is_no_name = member("user").isNull() | unfit("user", LONGEST_USER)  # empty: nobody has signed in
    of_user = of_wire(refuse(is_no_name, "user is not a user's name"), counters=USER_COUNTERS)
    of_hours = F.coalesce(
        refuse(member("version") > COMPLETE_VERSION, f"a version newer than {COMPLETE_VERSION}"),
        *of_all,
        refuse(~F.coalesce(F.size(member("after")) <= MOST_BOOTS, F.lit(False)), "after is not a list of boots"),
        refuse(
            F.exists(member("after"), lambda boot: ~F.coalesce(boot.rlike(BOOT), F.lit(False))),
            "after is not a list of boots",
        ),
    )
    return F.coalesce(
        refuse(F.col(raw).isNull(), "no value"),
        refuse(member("version").isNull(), "not a JSON object with a version"),
        F.when(is_complete, of_hours).when(is_instance, of_instance).when(is_user, of_user).otherwise(of_usage),
    )
