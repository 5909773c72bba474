"""The loop over raw sockets: bytes cut into frames, memory, and whose turn it is. What a frame means it does not know."""
