"""What each API does: one file per family, found through the one table in `table.py`."""
