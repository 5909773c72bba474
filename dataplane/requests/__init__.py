"""Between socket and handler: from frames to requests, from replies to answers in their order."""
