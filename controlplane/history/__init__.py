"""The figures of every instance over time: sampled every 10 s, rolled up to minutes and hours, shown as far back as is kept.

metrics      what there is a history of, by name, with its unit (pure)
resolutions  how fine rows are, how long they are kept, and which of them fit a question (pure)
rows         from the master's document to a row (pure)
waiting      throttled intervals, spread over steps of time
statements   the one aggregation, in SQL: for rolling up and for reading
services     sampling, rolling up, forgetting
forgetting   rows that have expired, in portions
selectors    a history of some metrics in some steps
stored       what a topic stored, hour by hour, from usage
lag          the same of consumer groups
requests     requests, errors and latencies
together     what several questions of one page need alike, read once
store        minutes and hours in Prometheus, or what speaks as it does
latest       the newest of it, of many instances and groups at once: what alarms and Prometheus read
exposition   the newest of it in Prometheus' text format (pure)
now          what is in that
scraping     where it is read, and a configuration to paste (pure)
by_certificate   who reads it with a client certificate in place of an API key
"""
