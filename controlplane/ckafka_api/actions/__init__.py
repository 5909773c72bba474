"""One function for each action: parameters to a service's arguments, its answer to the vendor's members. No rule stands here.

table calls                     the actions that are answered; what every one of them gets and gives
instances places routes tasks   buying and changing, regions and prices, who may connect, what has become of a change
policies                        what an instance does when its disk fills up
datahub                         topics that are named without an instance
rankings                        which topics take in or give out most
topics groups throttle_rules    what a tenant manages within an instance
messages                        what stands in a topic
users acls                      who logs in, and who may do what
"""
