"""The door to the brokers' Kafka. Each call says which cluster it is for.

client      the admin protocol over librdkafka: with the doors below, all that imports confluent_kafka
committed   OffsetFetch, which librdkafka does not survive while a coordinator moves
group_door  what is asked about consumer groups, by the same connections
record_door the records of a partition, from its end backwards
message_door  tenants' messages, on the bandwidth of their instances
leaving     LeaveGroup, which librdkafka has no call for
forgetting  OffsetDelete, which confluent_kafka has no call for
bare_groups  what librdkafka does not read of a group whose assignments are not a consumer's
group_marks  what each of many groups is like, as a mark that is another one after a rebalance
classic_members  which members of a group speak the classic protocol, which confluent_kafka does not say
flexible    the forms of requests and answers that are written by hand
transaction_door   what is asked about transactions, which librdkafka has no call for
transaction_bytes  those requests and answers as bytes
connection_door  connection_bytes  who is connected: a question of our own to each broker, and its bytes
config_door  config_bytes  every configuration of a topic with where it comes from, and its bytes
backlog_door  backlog_bytes  how many bytes are left to read from an offset on: another question of our own
size_door   how many bytes each broker has of some partitions
placing     reassignments, elections and log directories, which librdkafka has no calls for
placement_door  where partitions are and shall be: operators' moves
at_once     one question to several brokers at the same time
running     the brokers that are there to be asked
patience    asks again while a cluster changes its controller
topics      an instance's topics by their tenant's names
many_names  those of very many instances, to look for words in
groups      an instance's consumer groups by their tenant's names
transactions  an instance's transactions by their tenant's names
hanging     those of them that no coordinator knows
connections  an instance's connections, likewise
changes     what brokers say that clients have changed, portion by portion
"""
