"""SASL's exchanges and what goes with them, without a connection."""
