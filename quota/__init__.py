"""Quota: the master that shares an instance's bandwidth between brokers, and the agent inside each broker.

    contracts   what both planes agree on
    core        the rules, pure
    tls         certificates of the cluster's own processes: issuing, reading, whose one is
    agent       inside each broker: buckets, reports, grants
    master      shares limits out; one of several is active
    __main__    the process of a master
    simulator   an instance on many brokers, on a virtual clock
    zookeeper   clients of ZooKeeper: logins, ACLs, TLS
    wire steps  frames between agent and master; long work in pieces

Nothing here imports `dataplane` or `controlplane`.
"""
