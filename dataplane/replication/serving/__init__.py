"""The leader's side: fetch sessions, and answering those who follow.

follower_fetches              the leader's side of replication
fetch_sessions session_cache  what a reader wants is remembered; which sessions there are
replica_selection             which replica a consumer should read from (pure)
cold_lookups                  look-ups that lead to the disk
"""
