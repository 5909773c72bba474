"""Producer ids (transactions come later)."""
