"""What stands beside the logs in small files: offsets, leader epochs, producers, truncation marks.

schedule rows          when they are read and written, and what they say
lines formats          how
epochs                 which leader epoch began where
producers snapshots    what idempotent producers have written
transactions           which transactions are open, and hold readers back
truncation_marks       logs that were cut below what their checkpoints say
"""
