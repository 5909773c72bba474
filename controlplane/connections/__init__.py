"""Who is connected to an instance, who was refused, and who moves how much of which topic: asked of brokers, kept nowhere."""
