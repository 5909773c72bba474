"""What both planes agree on: names, instance specs, flow reports, grants. Pure, pinned by golden JSON files."""
