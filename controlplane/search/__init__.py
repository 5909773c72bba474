"""One search over everything that an organisation has, and one over the fleet for operators.

matching       the text that is looked for, how well a name fits it, and the best of many; pure
sql            the same order asked of the database
asking         who asks, which instances they know, and on which clusters these are
hits           what is found: an id, a name, its addresses in REST and in the console
of_instances   instances, topics, consumer groups, routes, whitelisted addresses
of_access      users, ACLs and throttle rules
of_people      members, invitations, API keys, access keys
of_books       operations, invoices, credit notes, months
of_rows        rows with an id and a name, in one query: alarms, receivers, token issuers, loads, budgets, roles, service accounts
kinds          the table of kinds: what each is called, and whom it is open to
operators      what operators find: clusters, brokers, everybody's instances, organisations, operations, rebalances, jobs

No broker is asked. Topics are the names in ZooKeeper, as they are now; groups those that the history has seen in the last ten
minutes; users, ACLs and throttle rules are read from ZooKeeper for at most MOST_LOOKED instances, and the answer says where that
was not all.
Each kind is open to whoever may look at its list by REST (accounts/scopes.py), and rows begin at the organisation's scope.
"""
