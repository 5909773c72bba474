"""What a request has to pass: buckets by its kind, rules within an instance, and who waits for a debt to be paid."""
