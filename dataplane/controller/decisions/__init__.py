"""What the controller decides, pure: leaders, ISRs, where replicas are placed."""
