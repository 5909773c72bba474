"""Logs on disk: segments, indexes, recovery, leader epochs, producer state."""
