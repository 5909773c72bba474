"""Who may do what in an instance: its users and ACLs, and why somebody may or may not. The truth is in the cluster.

users passwords        the users of an instance; what a password may be
acls presets words     its ACLs; the sets that producers and consumers need; Kafka's words
selectors              reading both, and the answer to "may ...?"
cut_off                which clients new ACLs would refuse at this moment
proposals              a change of all this, tried before it is put in force
trail                  reading what brokers have written to the instance's audit
records                the nodes in ZooKeeper in which both stand
api serializers        their REST; of proposals: proposal_api, proposal_serializers
"""
