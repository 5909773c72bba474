"""The controller: one broker that decides leaders and in-sync replicas, and tells the others."""
