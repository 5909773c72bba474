"""How an instance is: a value with reasons, from what brokers, the flow master, the meter and ZooKeeper say.

rules      from facts to a state with reasons (pure)
selectors  observes the facts, of many instances at once
services   remembers since when something is the matter
metrics    the same for Prometheus
"""
