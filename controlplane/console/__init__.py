"""HTML. For now one page that says where the API is."""
