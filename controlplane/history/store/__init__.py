"""The history's minutes and hours in a metrics store: Prometheus, or what speaks as it does (METRICS_URL, `controlplane/env.py`).

Rows come to be in the database, as without a store. Once nothing changes them any more they are written to the store, oldest
first, and a *span* says from when to when that is so. Within spans questions are answered by the store, and rows that the
database needs no longer are removed from it; everything else is answered by the database.

wire      what is sent to a store: remote write 1.0 (pure)
series    from rows to series and back, and the questions in PromQL (pure)
client    the store by HTTP
spans     which part of a question the store answers
writing   the rows that are due, and what the database may forget
reading   a part of a question, answered by the store
"""
