"""The rules of flow control as pure functions and values: no clock, socket, thread or randomness.

allocate model         the rule by which a limit is divided, and its vocabulary
ledger limited spread  what the master knows; its rows; a row on all brokers
bucket                 how long a sender has to wait
shares matching        a limit among senders by max-min; which throttle rule holds for whom
remainders             a whole number among some by their weights, in whole numbers
fence transactions     storage of an instance, and the block when it is full; its transactions, over all brokers
acls                   who may do what by an instance's ACLs, and by which of them
acl_filters            which ACLs are listed or deleted
elastic                what is carried above what was bought, and billed
windows                what brokers said of requests lately, added up over them
loop_book              how their loops spent their time lately
recorder over explain  who had to wait, how far above a limit, and why, in a sentence
explain_access         may somebody do something, and which rule says so
subject                whose a certificate is, as a text
principal_rules        from the subject of a certificate to a principal's name
scram                  what verifies a password, and a proof of it
"""
