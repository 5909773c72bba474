"""The follower's side: what is asked of a leader, and taking what comes.

fetchers fetcher  one for each broker that leads something here; one Fetch after the other
fetch_requests    what is wanted of one leader, and how it hears of it
"""
