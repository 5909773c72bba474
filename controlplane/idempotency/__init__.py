"""`Idempotency-Key`: a mutating call of REST that is repeated is answered as it was, and done once."""
