"""Produce and Fetch without decoding: requests that differ from an earlier one in nothing but offset or records."""
