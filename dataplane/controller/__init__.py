"""The controller: one broker that decides leaders and in-sync replicas, and tells the others.

controller                stands for election, and passes requests on
term                      one term of office, from the election to its end
events                    one event after the other
context state assignment  what is known; state machines as tables; how replicas change (pure)
store                     fenced reads and writes in ZooKeeper
channel                   decisions on their way to brokers
leaders topics brokers    decisions written and told: of partitions, new topics, brokers that come and go
deletion removal          topics that go
alter_partition_queue     leaders' proposals of new ISRs, gathered
decisions                 pure: elections, ISR proposals, placement, creation
operators                 what operators ask for
"""
