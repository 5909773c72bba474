"""Records: written, read, deleted, and where they are in their logs.

produce                     appends batches
fetch fetch_reading         batches out; one partition of a consumer's fetch
conversion                  records that cannot be stored or sent as they are
leader_hints                who leads, told with the error
log_offsets delete_records  ListOffsets, OffsetForLeaderEpoch; DeleteRecords
producers                   DescribeProducers
"""
