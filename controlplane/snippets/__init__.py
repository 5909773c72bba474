"""What to paste into a client of an instance, by one of its routes and of one of its topics: ten clients, programs that run.

programs    the texts, by the security of the route (pure)
selectors   by which route, with which topic and mechanism
"""
