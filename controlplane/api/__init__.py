"""DRF machinery that knows no domain: parsing, problems, pages, the published schema."""
