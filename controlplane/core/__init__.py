"""What every other part stands on: errors, ids, time, the audit trail, long operations."""
