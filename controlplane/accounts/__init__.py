"""People and the API keys they act with."""
