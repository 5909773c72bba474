"""The Kafka protocol, sans-IO: declarations in `messages/`, codecs generated from them by `codec`."""
