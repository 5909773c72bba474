"""Between socket and handler: from frames to requests, from replies to answers in their order.

dispatch       from frames to handlers and back: one connection
codecs         which codecs requests want, made beforehand
turnstile      what may begin now, and what waits unread
answers slots  answers in the order of requests; the place of one
served         a connection as the short cuts see it, with its parts
introduction tokens  who is on a connection, until it is known and again; what comes without headers meanwhile
fastpath       Produce and Fetch without decoding
"""
