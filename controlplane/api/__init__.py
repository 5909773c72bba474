"""DRF machinery that knows no domain: parsing, problems, pages, the published schema.

problems             errors as application/problem+json: the one mapping
pagination ranges    pages by cursor; spans of time by ?from= and ?to=
filters sorting      of lists, by ?state=, ?name= and their like; their order, by ?sort=
parameters           what an address may say: names that no view has declared are refused
parsers serializers  bodies of bounded size and depth; fields that refuse what they do not know
negotiation schema   one representation; what every operation of the published schema has in common
names                names in addresses that cannot be told from longer ones
dry_runs             what a call would do, by ?dry_run=true
idempotency_keys     calls that are refused without an `Idempotency-Key`
examples/            of each body and answer in the published schema
rates                how often a key, and an organisation, may ask
deprecation          what is going away, and when
preconditions        ETag, If-Match and If-None-Match of what has a generation
operations audit     REST of operations, and the health of this process; of the audit trail
"""
