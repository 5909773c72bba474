"""Topics of an instance as its tenant manages them. The cluster is the truth; of its own there is the whitelist of each."""
