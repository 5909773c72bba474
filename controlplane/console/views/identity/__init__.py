"""Pages of one's own account.

addresses    the address is confirmed, or changed
browsers     a browser gets tries of its own by a link
passkeys     they are added and removed; challenges for browsers
passwords    a forgotten password is replaced
sessions     where one is signed in
signing_up   the link of whoever has signed up
second_factor  it is set up and switched off; an organisation demands it
"""
