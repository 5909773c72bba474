"""What both planes agree on: names, instance specs, flow reports, grants. Pure, pinned by golden JSON files.

namespace              tenants' names and the cluster's
instance apart change  an instance's specification; what of it has nodes of its own; that it was written
rules acls users       throttle rules; who may do what; who may log in
token_issuers          whose tokens let in by OAUTHBEARER
proposals              a change that is tried, and who would be cut off by it
items                  documents of many items, a few at a time
certificates sealing   what routes of TLS show; private keys where others can read
applied                what a broker has made of specifications
mastership             which master is active
report grant rows      what a broker tells the master, and is answered; what both are about, and in which unit
requests topics_moved  what became of an instance's requests in ten seconds; what its topics moved meanwhile
loop_time              how a broker's loop spent these
throttled elastic      an interval in which an instance had to wait; what it carried above what was bought
refused                why a connection to an instance was refused
usage audit sizes      a usage record; a record of the audit; sizes in sentences
networks               blocks of addresses, as whitelists and ACLs have them
addresses              what is read from ZooKeeper is an address before anything connects to it
on_behalf              how the control plane says that a tenant pays for what it reads
identity               who the cluster's own processes are to each other
internal_security      whether they speak TLS, and the steps of the way there
zookeeper zookeeper_login  who may do what with each node in ZooKeeper; how a process says there who it is
"""
