"""Consumer groups: their members, their offsets, and who coordinates them."""
