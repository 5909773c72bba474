"""`Idempotency-Key`: a mutating call of REST that is repeated is answered as it was, and done once.

middleware  answers a repeated call before any view is reached
services    claims a key, keeps the answer, forgets both after 24 hours
"""
