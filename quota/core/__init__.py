"""The rules of flow control as pure functions and values: no clock, socket, thread or randomness."""
