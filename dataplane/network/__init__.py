"""The loop over raw sockets, and what cuts bytes into frames and frames into requests."""
