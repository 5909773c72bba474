"""Pages, one file for each thing a person works on."""
