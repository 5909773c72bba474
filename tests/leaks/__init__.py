"""The leak matrix: whatever a tenant names, another tenant's thing is answered like one that does not exist.

    make leaks                                                              a cluster of ours, two instances
    make leaks ARGS="--bootstrap host:port --foreign host:port"             two addresses of a running installation

There are two sides. *A* asks. *B* has topics, a group with a member, offsets, users, ACLs, quotas, a producer and a fetch
session, called by words that nobody else uses; and some of both have the same names. A *cell* is one question:

    API and version, who asks which broker, the field of the request that names something, and what is put there

It is asked twice, with what B has (*foreign*) and with something of the same length that nobody has (*absent*). The answers
have to be equal byte for byte when the names are swapped, and so has what becomes of the connection. Cells follow from
the declarations of messages (`kinds`, `asking`, `values`): a field that is new has no kind, and a test says so.

Before and after B comes, A asks whatever leaves no trace, about its own: these answers have to be equal (*unchanged*), and none
holds anything of B or of the cluster's inside (*scanned*). What B is told about itself has to be the same before and after the
whole matrix (*untouched*). What is not served to tenants ends the connection (*refused*).

    kinds      what each field of a request identifies
    asking     requests made from declarations, with one field replaced
    planting   what a side has, made by ordinary Kafka requests
    values     foreign and absent values for each kind
    comparing  answers made comparable: what a server chooses, swapped names, words that must not be there
    matrix     the phases; what was found
    logins     the same of users who log in
    client     a side's connections; lines.py, virtual.py: over sockets, on virtual time
    world      our cluster with its two instances
"""
