"""The local stack: `manage.py up` starts, watches and stops every process of Sluice on one machine.

bootstrap                  from a bare Python to the virtual environment
layout ports config        folders and ports; which ports are free; the files that the processes read
plan                       which programs make a stack, and how each shows that it is ready
copying                    the database as it was before a new release changes it
run                        what `manage.py up` does, told in order
supervisor warden process  starts and restarts; ends what is left, whatever happens to the supervisor
zookeeper redis metering   the real programs: their files, command lines and pulses
report demo                stack.json and a page of text; the demo tenants
"""
