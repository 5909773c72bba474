"""One small program for each client, in the client's own language; `tests.clients` says what they read and answer.

`jobs` is what the Python ones share: librdkafka, kafka_python, aiokafka_program. JavaProgram.java, kafkajs.js, franz_go/ and
sarama/ (Go, each a module with its own versions) do the same.
"""
