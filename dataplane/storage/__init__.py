"""Logs on disk: segments, indexes, recovery, leader epochs, producer state.

manager               all logs of a broker: found, created, moved, deleted, closed
directories presence  data directories and what became of them; whether a log's is still its own
files unlisted cold   the files door, names that are not on disk yet; reads past the page cache, beside the loop
unhurried             work in the background that nobody waits for
moving closing        a log changes its directory; the orderly end
config rules          what can be set about logs, and asked of records
producer_budget       what an instance's logs may remember of producers
errors                what can go wrong
log                   one replica's log
segments              batches in files, with sparse indexes
checkpoints           small files beside the logs
startup               recovery, new replicas, whether anything was lost
cleaner               compaction
"""
