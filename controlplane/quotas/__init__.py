"""How a bought limit is shared out between brokers, as the active master tells it, and who had to wait since when."""
