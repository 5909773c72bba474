"""Mutual TLS between the cluster's own processes. Both planes use it; tenants' certificates are another matter.

material    the files of one process: its certificate, its key, whom it trusts; read again when they change
contexts    from these to what TLS is made with
current     what TLS is made with now
shown       whose a certificate is, until when it is good, and why a peer's is refused
authority   a certificate authority of the cluster, and what it issues
store       the folder of an authority, and how one takes the place of another
__main__    the command of operators: make, issue, renew, replace
"""
