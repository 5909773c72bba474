"""Records: written, read, deleted, and where they are in their logs."""
