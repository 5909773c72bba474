"""`make bench`: one broker through a tenant's port, beside a bare loop in the same run. Figures in var/reports/bench.json."""
