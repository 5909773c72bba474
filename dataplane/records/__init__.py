"""Record batches as bytes: read, checked and built. No I/O."""
