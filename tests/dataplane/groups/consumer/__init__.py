"""Groups of the consumer protocol (KIP-848).

machine clients    a group without a coordinator; consumers as a client library has them
test_reconciliation test_assignors test_records    each pure part by itself
test_who_may_speak test_members test_topics        the state machine by lists of events
test_any_order     random orders of everything: never two owners, always at the target in the end, replay is service
test_coordinator test_handlers test_failover       on virtual time, through the codecs, over real logs and replication
"""
