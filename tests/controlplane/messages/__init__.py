"""Messages of a topic: the look, what is shown of it, REST."""
