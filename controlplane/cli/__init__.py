"""`sluice` on the command line: everything that a tenant does by REST, as commands.

    __main__                `python -m controlplane.cli`
    app                     the root command, its groups, and how an error becomes an exit status
    commands                one file for each group of commands; they name the call, the columns and nothing else
    options completion      arguments and options that many commands have; what a shell can offer for them
    session                 what a command works with: the connection, the output, and how a list or an operation is followed
    segments                names that clients of Kafka choose, as segments of an address
    operations              every call of the API that a command makes, by method and path
    calling                 what every client of REST has: the key as a header, problems; the provider for Terraform uses it, too
    client                  HTTP: the key, pages, repetitions under one `Idempotency-Key`, refusals as errors
    waiting                 an operation from its beginning to its end, with progress
    profiles                addresses and API keys of a person, in a file of mode 0600
    bodies                  what was typed, as JSON
    output tables values    tables or JSON; their layout; numbers, moments and names as text
    errors                  what can go wrong, each with its exit status

It talks HTTP and knows nothing else of the project: `python -m controlplane.cli` on a machine with typer, rich and requests would
do. docs/subsystems/cli.md is the manual.
"""
