"""The messages of the protocols, in two files `.proto`.

messages    made of them, for everybody else
"""
