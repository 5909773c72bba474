"""What clients say of themselves, and what follows from it: pure, and below everything that knows instances.

exchange plain scram   SASL: what all mechanisms have in common; PLAIN (RFC 4616); SCRAM's side of a server (RFC 5802, 7677)
oauthbearer tokens     OAUTHBEARER (RFC 7628), and the tokens by which it lets in (RFC 7519)
known                  what verifies a user's password, and what takes its place for somebody who does not exist
strangers              the internal listener's connections on which nobody has logged in
attempts               who has failed how often, and what that has him wait
acl_draft user_draft   ACLs, and users, while a request alters them
many_filters           which of many filters means an ACL
roles                  which of the cluster's own may do what on the internal listener
"""
