"""Produce and Fetch without decoding: requests that differ from an earlier one in nothing but offset or records.

produce            one partition, header bytes that were seen before
fetch fetch_shape  one partition, nothing new but the offset; what such a request means
fetch_in_session   one partition that a session's reader has got on in
permits            whether a learned shape may take the short cut, asked once a generation of access
"""
