"""The part of quota that runs inside each broker: counts, reports, obeys grants, falls back when the master is gone.

agent      buckets, reports, grants: sans-IO
transport  the line to the active master, over a loop that is handed in
"""
