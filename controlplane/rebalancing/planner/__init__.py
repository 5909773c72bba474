"""What should be where: a plan of moves for a cluster that is described as a value. Pure, no Django.

model      brokers, partitions and instances as they are; what is wished; the plan
state      where everything is while a plan is made, with the sums of every broker kept in step
goals      what brokers are to have alike, within which bounds, and how far they are from it
hard       what comes before any goal: draining, racks, full disks
soft       goals one after the other, none at the cost of one before it
bandwidth  how much of what a tenant has bought its brokers can carry
planning   rounds of all of it until nothing is left to do; the plan with its figures
"""
