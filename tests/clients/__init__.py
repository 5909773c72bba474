"""`make clients`: every client of others by every security and mechanism of a route, against real brokers of ours.

    python -m tests.clients [--client NAME …] [--row PART] [--check NAME …]

A *row* is a way in (`rows`): a route of one instance, a mechanism, perhaps a certificate. A *cell* is a client on a row. In
each cell the client does four things (`checks`):

exchange           sends keyed records at acks=all, reads them in a group, commits; the log and the committed offsets are right
denied             is refused topics and a group that its ACLs do not hold, with the error that says so
stranger           with a wrong password, or the wrong certificate, is told within a bounded time
reauthentication   on rows with SASL sends for three lifetimes of a login, and logs in again on its open connections, twice at
                   least on each broker, without an error and without a record lost or doubled

The clients are small programs in their own languages (`programs/`), which read jobs from standard input, a JSON object a line,
and answer each with one line of JSON:

    {"name": "exchange", "do": "exchange", "bootstrap": "127.0.0.1:20100,…", "protocol": "SASL_SSL", "mechanism": "PLAIN",
     "user": "alice", "password": "…", "ca": PATH, "certificate": PATH, "key": PATH, "keystore": PATH, "topic": "orders-1",
     "group": "readers-1", "records": 300, "seconds": 0, "limit_s": 20, "lifetime_ms": 5000}

    {"name": "exchange", "ok": true, "words": "what the client said of errors", "sent": 300, "received": 300, "distinct": 300}

do: exchange   `records` records v0, v1, … with keys k0 … k96, at acks=all; then all of them in the group, committed
    produce    one record; `ok` says whether it was acknowledged, `words` why not
    consume    one record in the group; likewise
    steady     v0, v1, … every 10 ms for `seconds`; `sent` are acknowledged, `ok` is that nothing went wrong

Paths are empty where a row has no use for them; "keystore" is certificate and key in one file, as Java wants it. With
OAUTHBEARER "password" is the token, which is good for an hour. A program
ends with its input. What else it prints goes to its log. Whatever is compared with the broker's state, the harness looks up
itself (`instance`): it does not believe programs.

    rows clients checks     what is crossed with what, and what is asked of a cell
    instance                the instance with all routes, and what has happened there
    cells                   runs a client on a row and judges
    report                  the table, var/reports/clients.json
"""
