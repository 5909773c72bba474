"""The loop over raw sockets: bytes cut into frames, memory, and whose turn it is. What a frame means it does not know.

loop                the door: one thread, one epoll, raw sockets
accounts turns      whose turn it is and whose memory it holds; how long turns are
arena incomplete    memory that all connections receive into; a frame that is not whole yet
connection sending  bytes in, cut into frames; buffers and file ranges out
preface proxy_header  connections that begin with a PROXY header; what one says
tls tls_context     TLS on a socket, in user space; with what certificates
tls_connection      a connection that begins with a handshake
tls_records         where records end in what comes from the wire
handshakes          how many of them begin in a second, and which wait
fairness            how addresses share places and take turns (pure)
refusals            connections that end for what came on them: requests that are too large, no TLS where it is wanted
"""
