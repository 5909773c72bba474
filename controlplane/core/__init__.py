"""What every other part stands on: errors, ids, time, the audit trail, long operations.

errors          every error that a caller may be told, as one tree
operations      long work in visible steps, which survives the death of its worker
dry_runs        what a change would do: made, and taken back
durations       how long operations take, by those that have succeeded
scope           keeps tenants' data apart: a query says whose data it wants, or raises
audit origin    one row per change that a person asked for; where a request comes from, and its id
client_certificate   which one a caller has shown to the TLS proxy
audit_chain audit_sealing   these rows as a chain that shows what was changed (the first is pure)
audit_sides     what an entry says of before and after (pure)
audit_folds     what can be repeated at will: one entry an hour
staff_views     what operators of the service have looked at
audit_file      they as CSV
charset         requests are read as UTF-8
wording         what Python says, in the language of whoever reads it
ids clock text  identifiers; time, handed in; what names may hold
whitelist       lists of addresses and CIDR blocks as people write them
addresses       which are public: where a tenant may have us connect to
sealed          secrets in rows: what cannot be opened is an answer, and a line for operators
checks          what this installation must have before it starts
kept caching    what is kept in the cache, which may be away; the cache in Redis, which is not asked again while it is away
counts_here     windows of tries in this process, while the cache is away
pulse           whether a worker is there
logs            what is not worth a line
portions turns  a long list in parts; queues taken in turn (pure)
sums            what tells of an organisation as a whole is left out for whoever is for some instances alone
"""
