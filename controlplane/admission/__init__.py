"""Admission: whether there is room for what is bought, in its cluster and within what its organisation may have."""
