"""What an instance's owner asks for: topics, configurations, quotas, directories."""
