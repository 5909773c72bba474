"""Jobs of Spark. From the topic `__usage` to hourly usage: one Structured Streaming job.

::

    brokers ──> __usage ──Kafka source──> parsed ──┬─ all, the bad ones with the reason ──> lake/usage_raw      Delta
                                                   └─ good ─> largest of each key ──executors──> staged
                                                                    staged ──one transaction──> database   DB-API

    schemas     what a record looks like to Spark, and the columns of each stage
    checks      which records are refused, with a sentence
    transforms  one idea per DataFrame -> DataFrame function
    maxima      largest counters, staged and merged: statements that only ever raise (pure)
    tables      the database's side: what is staged and merged, and the job's signs of life
    folded      days that are over as the database keeps them: sums, a horizon, and anchors of what is deleted
    positions   where the stream goes on, what it can never read, up to when the database is complete (pure)
    progress_table  the rows that say so
    statements  what brokers say of whole hours, and what follows (pure)
    source      Kafka's side: the stream, and what the topic is now
    signs       that the job's process is there, every two seconds
    listener    what Spark says of the query while it runs
    session     the options of its Spark; Java, jars and the JVM are `controlplane.spark`'s
    settings    the environment, typed
    jobs/usage  the job: `python -m controlplane.metering.pipeline.jobs.usage`

Every record goes into a Delta table as well, before the database hears of it, and hours are recomputed from that: a job that
ends, once a day.
::

    usage_raw ──the SQL of recompute──> hours ─┬─> usage_hourly, usage_daily, usage_instances_hourly
    metering_usagemaximum, billing_invoice ────┼─ compared ──> metering_reconciliation, metering_difference
    metering_folded… (days that are over) ─────┴─ put right

    raw_commits       up to where the table has each partition, as its commits say it (pure)
    raw_table         a batch into the table, each record once
    recompute         the SQL by which hours are recomputed (pure)
    billed            what invoices have billed, by the hour (pure)
    comparable        which hours can be compared, and of which clusters (pure)
    reconcile_frames  recomputed hours, their roll-ups, and what differs, as DataFrames
    reconcile_tables  what executors read, and what the driver writes
    jobs/reconcile    the job: `python -m controlplane.metering.pipeline.jobs.reconcile`

From the minutes of the history to the quota report: a job that ends, once a day.
::

    history_minute ──executors──> quota_frames ──> quota_days.row_of ──> staged ──one transaction──> quotas_quotaday

    quota_days         what the report says of a day: percentiles, guarantee, forecast; which days are due (pure)
    quota_frames       minutes added up, as DataFrames
    quota_tables       what executors read and stage, and what the driver publishes
    jobs/quota_report  the job: `python -m controlplane.metering.pipeline.jobs.quota_report`

What all jobs have in common:

    schedule  which there are, and when each is to run next (pure)
    runs      what jobs say of their runs: each writes its own row
    runner    starts what is due or was asked for: `python -m controlplane.metering.pipeline.runner`

Counters are cumulative, and only the largest of each key counts. So there is no watermark and nothing to lose: a batch
that is run again, a record that comes late, twice or out of order, a checkpoint that was thrown away change no total. What can be
lost is a record that is gone from the topic before it was read; that is noted for operators.

No Django in here: the job runs with Spark's own life cycle, perhaps on another machine, and shares only DATABASE_URL.
"""
