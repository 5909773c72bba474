"""The one place where clients of ZooKeeper are made: each says who it is, and each node that it makes has the table's ACL.

client     a kazoo client with logins, ACLs and TLS; founding an empty cluster
settings   what a process is told about it: `[zookeeper]` of broker.toml and master.toml, the control plane's variables
tls        how a connection is secured
securing   walking the tree to give every node the ACL of the table

Who may do what is `quota.contracts.zookeeper`, logins are `quota.contracts.zookeeper_login`; both pure.
"""
