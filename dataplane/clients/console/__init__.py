"""`python -m dataplane.clients.console`: topics, and messages by hand."""
