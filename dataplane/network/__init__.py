"""The loop over raw sockets: bytes cut into frames, memory, and whose turn it is. What a frame means it does not know.

loop                the door: one thread, one epoll, raw sockets
accounts turns      whose turn it is and whose memory it holds; how long turns are
arena incomplete    memory that all connections receive into; a frame that is not whole yet
connection sending  bytes in, cut into frames; buffers and file ranges out
refusals            requests that are too large
"""
