"""What pages say in their language: the mechanism is `core/wording.py`'s, whose functions are named here for the console.

Beside it the short words that no rule of the extraction would find.
"""

from __future__ import annotations

from controlplane.core.wording import PLACE, filled, fitting, is_english, is_pattern, joined, worded

__all__ = ("NAMES", "PLACE", "filled", "fitting", "is_english", "is_pattern", "joined", "worded")

NAMES = (
    # States and kinds as models keep them, with and without a capital where pages show both.
    *"creating running failed deleting deleted removed closed succeeded pending waiting done planning proposed paused".split(),
    *"isolated restoring begun refused critical OK".split(),
    *"cancelling cancelled expired asked moving skipped sent stopped healthy degraded unhealthy unknown starting behind".split(),
    *"queued over silent active late owner member viewer Owner Member Viewer Planning Proposed Running Paused Cancelling".split(),
    *"operator billing Operator Billing".split(),
    *"Cancelled Failed Done Succeeded Expired Waiting Asked Moving Skipped Sent Email Webhook email webhook alarm test".split(),
    *"Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    *"confirm issued brought none kept missed reported auto light dark".split(),
    # What is measured, and in what.
    *"produce consume storage bandwidth partitions connections requests errors limit allocated average maximum".split(),
    *"requests/s errors/s records/s hour hours GB-hours months minute minutes second seconds days day h min s".split(),
    *"leader leaders above below empty . Is As Do it them".split(),
    "E-mail",
    "{number} records",
    "{verb} waited {time}",
    # Of mails: between the sizes of a change, these sizes, and topics whose retention was shortened.
    *(", ", "{number} MiB/s of bandwidth", "{number} GiB of storage", "{number} partitions", "topics: {topics}"),
    # Why an instance goes on by the hour, in a mail.
    "It was not isolated, since it is protected against deletion.",
    "It could not be renewed: under the plan of its organisation nothing is paid in advance.",
    "It could not be renewed: its organisation has chosen to pay in another currency from the next month on.",
    *("there", "not there", "at least", "at most", "Another browser", "a member", "{number} members"),
    # Why a message to a receiver was given up.
    *("the receiver has another address", "the address is confirmed", "the instance was deleted"),
    *("{leaders} leader", "{leaders} leaders"),
    *("{number} partition has no leader", "{number} partitions have no leader"),
    *("{number} partition is under-replicated", "{number} partitions are under-replicated"),
    # What brokers and the pipeline say, and the kept sentences of operators' help.
    "no whitelist holds the address",
    "User:ANONYMOUS is whoever has not logged in.",
    "The meter gives no sign of life",
    "No batch has ended for {number} minutes",
    "metering has come to {read} UTC; it must come to {wanted}",
    "records {first} to {last} of partition {partition} of __usage expired before they were read",
    "records {first} to {last} of partition {partition} of __usage expired before they were read; an operator has to judge it",
    "{host} has no public address",
    "ask the operators of this service",
    "write to {contact}",
    "To have a cap raised, {whom}: name your organisation ({id}), the cap, how much you need, and what for.",
    # Bounds of topics' configurations, as brokers say them; and words of topics' pages.
    "In this service {least} at least and {most} at most.",
    "In this service {least} at least.",
    "In this service {most} at most.",
    "For those who run the brokers.",
    *("sizes", "offsets", "configurations", "Changed"),
    # What runs of loads say: as the runner keeps it, and the programs, with names of the page for their options.
    "the program that ran this load is gone, and did not say why",
    "the program ended with status {status}, and did not say why",
    "the program cannot be started",
    "the runner could not look after this run",
    "the operators of this service allow no such place for loads any more",
    "the instance is {state}, not running",
    "stopped: the instance is {state}, not running",
    "stopped before it began",
    "stopped; what was committed by then stays, and the next run goes on there",
    "stopped after {hours} hours; the next run goes on where the table is",
    "commit {number} of {commits}: reading {offsets} offsets: {seconds} s",
    "commit {number} of {commits}: reading {offsets} offsets: {seconds} s, {ready} of {all} tasks",
    "commit {number} of {commits}: writing {rows} rows: {seconds} s",
    "commit {number} of {commits}: writing {rows} rows: {seconds} s, {ready} of {all} tasks",
    "looking at table and topic: {seconds} s",
    "looking at table and topic: {seconds} s, {ready} of {all} tasks",
    "inferring the schema: {seconds} s",
    "inferring the schema: {seconds} s, {ready} of {all} tasks",
    "{offsets} offsets of {partitions} partitions, {commits} commits",
    "nothing to load: the table has all that the topic has",
    "{rows} rows, {bytes} bytes of keys and values, 1 commit, {seconds} s; topic id {id}",
    "{rows} rows, {bytes} bytes of keys and values, {commits} commits, {seconds} s; topic id {id}",
    (
        "names with types of BIGINT, INT, SMALLINT, TINYINT, DOUBLE, FLOAT, DECIMAL(p,s), BOOLEAN, STRING, BINARY, DATE, "
        "TIMESTAMP, ARRAY<…>, MAP<STRING,…> and STRUCT<…>, such as id BIGINT, customer STRING; or the same in Spark's JSON"
    ),
    "nothing to load: the table has all that the topic has; {said}",
    "{rows} rows, {bytes} bytes of keys and values, 1 commit, {seconds} s; topic id {id}; {said}",
    "{rows} rows, {bytes} bytes of keys and values, {commits} commits, {seconds} s; topic id {id}; {said}",
    "{said}; loaded by runs before",
    "looking whether the bucket takes the table",
    "version {version} of {newest}: 1 file",
    "version {version} of {newest}: {files} files",
    "version {version} of {newest}: {ready} of {files} files",
    "version {version} of {newest} copied",
    "copied up to version {version}: 1 file, {bytes} bytes",
    "copied up to version {version}: {files} files, {bytes} bytes",
    "nothing to copy after version {version}",
    "loaded, not all copied by this run",
    "offsets {first} to {last} of partition {partition}",
    "offsets {first} to {last} of partition {partition}; {what}",
    "Spark does not run: {why}",
    "the topic {before} was deleted and made again, as {after}, while it was read",
    "expired while they were read: {what}. Nothing was written.",
    "the table was loaded from the topic {before}, not {after}",
    "the table was loaded by a newer release (manifest {number}); this one knows {known}",
    (
        "{table} is a table whose log does not say what was loaded into it: name what to load with “These offsets again”, which "
        "takes the place of what the table has of it"
    ),
    "the schema cannot be read: {why}",
    (
        "none of the {number} values looked at is a JSON object with members: “None: keys and values as they are” loads them"
    ),
    "the table has the schema {schema} ({known}), and another one is asked for: leave schema out, or load into another table",
    "{merged} of {rows} rows are staged: another run of the report removed them",
    (
        "the table was loaded from the topic with the id {before}, and the topic of this name has the id {after}: it was deleted "
        "and made again. “New topic” goes on with the new one, from its beginning; the rows of the old one stay, under its id."
    ),
    (
        "no longer in the topic: {what}. They expired, or were deleted. “Skip what has expired” goes on behind them, and notes "
        "in the table what is missing."
    ),
    (
        "no longer in the topic: {what}. They expired, or were deleted. “Skip what has expired” loads the rest of the range; "
        "rows that the table has of them stay."
    ),
    (
        "partition {partition} ends at offset {end}, and the table has it up to {most}: the topic has lost its end (an unclean "
        "leader election?). Load into another table; this one keeps what it has."
    ),
    "partition {partition}: the table has {has}, and {span} would leave a hole between the two",
    "partition {partition}: {span} is no range of offsets up to {end}",
    "the topic has no partition {partition}",
)
"""Short words that pages show and that no rule of the extraction would find."""
