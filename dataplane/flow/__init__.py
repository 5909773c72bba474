"""What the broker reports to the flow master, and what it is granted."""
