"""Instances on a broker: listeners, namespaces, whitelists, who is on a connection, and the buckets of their limits.

registry          specs in ZooKeeper become instances with listeners
instance session  one instance as served here; who is on a connection
endings closings  which connections may not be any more (pure); closing them, of all instances by turns
logins verifying newcomers  how clients log in; proofs that take long; who has not logged in yet
access whitelist  who may do what, decided in one place; which addresses a list lets in (pure)
shadow shadow_reports  who would be cut off by a proposal; on its way to ZooKeeper
proxies           which peers may say whose connection it is
talkers recent    who moves how much of which topic; how much in the last minute (pure)
user_traffic      how much each user has moved on the wire (pure)
refused_here      connections that were not taken, and why
request_figures   how many requests were answered, with which errors, how long each took (pure)
headcount         how many connections from where, of an instance and of each route (pure)
certificates secured  what routes of TLS are served with, and who a client is by its certificate
gate              limits become buckets; the storage fence
"""
