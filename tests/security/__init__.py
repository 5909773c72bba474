"""Attacks: what a client that means harm can try, and what must come of it."""
