"""One instance on many brokers on a virtual clock: how well its limit holds under a demand, by strategy."""
