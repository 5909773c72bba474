"""What the broker reports to the flow master, and what it is granted.

facts    what only the broker knows of an instance when a report is due
windows  requests of instances, ten seconds at a time
loop_times what the loop worked for each instance in these ten seconds
master   the line to the active master; feeds `quota.agent`
"""
