"""How the control plane says that it reads or writes for a tenant: the client id of its connections.

Who looks at a topic's messages by REST or the console uses the instance's bandwidth as a client of the instance's own would. The
control plane comes by the internal listener, whose traffic is nobody's; with this client id, and the role of the control plane,
brokers charge each answer and each batch to the instance that owns the topic, and count it in that instance's usage.
It is no right: what the control plane may do follows from its role alone (`dataplane.security.roles`).
"""

from __future__ import annotations

CLIENT_ID = "sluice-on-behalf"
