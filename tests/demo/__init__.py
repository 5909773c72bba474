"""`make demo`: real clients against the running stack, with faults, and figures in var/reports/demo.json."""
