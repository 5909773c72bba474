"""Topics into tables: `lake_load` copies a topic's records to a Delta Lake table, each once, whatever is killed.

    load        the program: `python -m controlplane.lake.load`, or spark-submit
    verify      another program: compares a table with its topic, by another client
    lookup      a third: reads a few rows for somebody who waits, and is told by lines on its standard input which
    mirror_audit  a fourth: compares a topic with its mirror
    loading     one load, from the manifest to the last commit
    table       the Delta table: what its log says, and commits
    topic       Kafka's side: options, offsets, records
    rows        the table without Spark: some rows by partition and offset
    comparing   what `verify` and `mirror_audit` have in common as programs
    mirror_frames  two topics beside each other: numbered records, what differs
    columns     from records to rows: raw columns, typed ones, totals
    timestamps  a record's milliseconds, out of the calendar of Spark's Kafka source
    copy_table  a program without Spark: copies a table from a folder into a tenant's bucket
    copying     one copy: which objects, in which order
    commitlog   the log of a table in a folder, as files
    bucket      the one door to S3

    progress    a line now and then
    report      what is done, and how it went, for a program that has started a load

    planning    which offsets, in which steps (pure, as what follows)
    manifest    what stands in a commit beside its data
    checksum    of the records of a partition, for whoever wants to compare
    inference   which schema JSON values have
    schema_types  those that a schema may have, whoever has written it
    ddl         a schema as people write it, read without Spark
    request     the command line
    errors      what can be wrong, and the exit status

No Django in here, as in the metering pipeline: the program runs with Spark's own life cycle, perhaps on another machine.
"""
