"""Coverage-guided fuzzing with atheris: `make fuzz MINUTES=30 TARGET=decoders|connection|proxy|sasl`. Not part of `make test`."""
