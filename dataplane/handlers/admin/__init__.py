"""What an instance's owner asks for: topics, configurations, quotas, directories.

topics partitions once_named     CreateTopics, DeleteTopics; CreatePartitions; what both refuse beforehand
configs alter_configs resources  DescribeConfigs; AlterConfigs; what a resource stands for
client_quotas                    a tenant's quotas are throttle rules
acls scram_users access_nodes    who may do what, who may log in; how a change of either is put in force
log_dirs                         where replicas are on the disks
tolls                            what a request pays for changes
"""
