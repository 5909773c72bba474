"""One file per suite: how it is run against a bootstrap address, and what it says."""
