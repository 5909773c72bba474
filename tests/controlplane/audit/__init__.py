"""The chain of the audit trail."""
