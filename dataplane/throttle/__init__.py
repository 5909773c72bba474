"""What a request has to pass: buckets by its kind, rules within an instance, and who waits for a debt to be paid.

tolls              which buckets a request has to pass
debt_queue         who may pass now, and who waits
rules rule_writer  an instance's throttle rules here; changing them in ZooKeeper
client_quotas      Kafka's client quotas as throttle rules, and back (pure)
mutations          how fast an instance may have the controller change things
fetching           what a fetch may bring of topics under a rule
"""
