"""What both planes agree on: names, instance specs, flow reports, grants. Pure, versioned, pinned by golden JSON files."""
