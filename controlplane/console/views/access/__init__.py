"""Who may do what in an instance.

users acls     whom clients log in as; what they may do
token_issuers  whose tokens let clients in
audit          what happened there, and whether it is written down
question       may somebody do something, and which rule says so
proposal       a change that is tried: who would be cut off by it
certificates   the authority as a file, what a TLS route shows, and whose certificates it takes of clients
routes         the ways in: opened, changed, removed, and what clients paste to come by one
"""
