"""Loads of topics into a lake, as tenants set them up: by hand or on a schedule, into a folder here or a bucket of theirs.

The work itself is `controlplane.lake`, a program of Spark that knows no database. Here are its destinations and schedules, who
asked for what, and how it went.

models                 loads and their runs
destinations           where a load may go (pure)
reading                how a tenant reads a table (pure)
schedule               when a load runs next (pure)
ranges                 what of a topic is to be loaded again, as words for the program (pure)
installed              what operators have set: folders, buckets, how many at once
services selectors     set up, changed, deleted, run, stopped; what is shown
watching               the operation that ends with the first run of a load
claiming               a run is taken, gives signs of life, and ends: rows, as the runner writes them
running                one run as a process: the words, the files with secrets, what it reports
runner                 the loop; `manage.py lake_runner`
kept_tables            tables of deleted loads on the runner's machine: counted, removed
metrics                what Prometheus reads of them
tables                 what tables still have of a topic whose records have expired, for whoever looks at messages
unread                 why a table is not read, in sentences (pure)
api serializers        REST
"""
