"""The control plane: what tenants and operators say they want, and the machinery that makes the cluster so.

    urls wsgi asgi         every route; the web process
    stack                  `make up`: the whole service on one machine
    console                HTML, for tenants and operators
    instance_rest metrics  REST of instances with health and use; /metrics for Prometheus
    alarms                 who is told when something is the matter, and what happened
    rebalancing            load moved between the brokers of a cluster, by proposals of operators
    health admission       how an instance is; whether there is room for what is bought
    billing quotas         plans and invoices; how a limit is shared out, and who had to wait
    throttle_rules topics  what a tenant manages within an instance; the cluster holds the truth
    access                 likewise: users and ACLs, and who may do what
    metering               hourly usage, and the Spark job that adds it up
    instances              what tenants buy, and the machinery that makes brokers serve it
    kafka idempotency      the door to the brokers' admin protocol; a repeated call is answered as before
    clusters accounts      physical clusters with the doors to ZooKeeper and flow master; people and API keys
    tenants                organisations and roles
    api                    REST machinery that knows no domain
    core                   errors, ids, time, the tenant scope, the audit trail, long operations
    celery settings java   Celery's application; Django's settings; which Java runs ZooKeeper and Spark
    env                    every environment variable
    catalogues             translations: `.mo` made of `locale/*.po` when settings are read
    cli                    `sluice` on the command line, which speaks REST and imports none of the others
    terraform              the provider for Terraform and OpenTofu, which speaks REST likewise

Each line imports from those below it only (docs/decisions/0013, checked by `make lint`). In an app, `models` are rows, `services`
write, `selectors` read, `serializers` and `api` are its REST, `tasks` are Celery's edge.

Tenants speak REST; the database is the truth for instances, ZooKeeper carries the wanted state to the brokers, and the
cluster itself is the truth for topics. See ARCHITECTURE.md.
"""
