"""Compaction: of records with the same key only the last is kept.

choice    which log is dirtiest, and what of it may be cleaned
work      the job: reads old segments, writes new ones beside them; runs in a child process
batches   what remains of one batch
transactions  which batches were aborted, which markers nobody needs
marker    `compacted-to`: below it segments may end before the next begins
swap      new segments take the place of old ones, in steps that a crash may interrupt
cleaner   when all of this happens, on the broker's loop
"""
