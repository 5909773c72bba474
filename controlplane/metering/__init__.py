"""Usage facts: what each instance produced, consumed and stored, hour by hour, and where each number came from."""
