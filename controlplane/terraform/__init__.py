"""A provider for Terraform and OpenTofu: what a tenant has, as resources. deploy/terraform/README.md is the manual.

    __main__                  `python -m controlplane.terraform`: serves Terraform, or installs itself for it
    installing                the executable that Terraform looks for, which starts this package
    plugin                    go-plugin: the handshake on standard output, TLS, the gRPC server, its end
    service                   every call of the plugin protocol, as a call of a resource
    resources                 one file for each resource, and the data sources
    planning                  what is going to be, of what is and what is written
    configuration             of the provider: where to, and who
    rest waiting              HTTP with repetitions under one `Idempotency-Key`; an operation until it has ended
    diagnostics               what can go wrong, and at which attribute it is shown
    wire                      values as msgpack, which Terraform sends and takes
    schema values             attributes and their types, and when two values mean the same; values in Python
    protocol                  Terraform's plugin protocol 6 and go-plugin's, as messages

Terraform starts a process of it for each run and speaks gRPC to it. It talks REST and knows nothing else of the project:
grpcio, protobuf, msgpack, cryptography and requests are all that it needs (requirements/terraform.in).
"""
