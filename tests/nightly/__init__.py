"""`make nightly`: what is too long for `make test` and too good to be run before a release only. See `parts`."""
