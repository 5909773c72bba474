"""Certificates of instances' TLS routes: an authority of each instance's own, what it issues, and what tenants bring.

models     authorities and certificates, private keys sealed
issuing    keys and certificates made (pure but for chance)
checking   what a tenant brings: does the key fit, is the chain whole, does it name the hosts (pure)
keys       how private keys are sealed, here and for brokers
readers    whose Prometheus it is that has shown a certificate
services   what a route shows is there, is renewed in time, and stands in the cluster
tasks      renewing, by the clock

The database is the truth; the node in ZooKeeper is written anew from it (`quota.contracts.certificates`).
"""
