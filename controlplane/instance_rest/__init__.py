"""REST of instances: the row with its addresses, its health and its use, which stand in apps above `instances`."""
