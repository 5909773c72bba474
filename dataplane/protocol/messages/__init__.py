"""One file per family of APIs: declarations only, in the shape of `dataplane.protocol.schema`."""
