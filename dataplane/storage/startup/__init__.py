"""From a directory to a log: recovery, new replicas, and whether anything was lost."""
