"""Crash points: the writer of logs is stopped after every single call, and what it leaves is opened again."""
