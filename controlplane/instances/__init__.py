"""The thing tenants buy: its wanted state, and the machinery that makes brokers serve it."""
