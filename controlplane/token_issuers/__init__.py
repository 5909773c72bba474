"""Token issuers of instances: whose tokens let clients in by OAUTHBEARER, and the keys by which brokers verify them.

models                 the issuers, with the keys that were fetched last
allowed                from where keys may be fetched: the operator's list (pure)
installed              that list and how often, as the installation's settings say
keys                   a published key set becomes keys that brokers verify by (pure)
fetching               the one door to issuers' servers
services selectors     made, removed, their keys renewed; what is shown of them
tasks                  renewing, by the clock
api serializers        their REST

The database is the truth; the node in ZooKeeper is written anew from it (`quota.contracts.token_issuers`).
"""
