"""The follower's side: what is asked of a leader, and taking what comes."""
