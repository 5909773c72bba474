"""What both planes agree on: names, instance specs, flow reports, grants. Pure, pinned by golden JSON files.

namespace              tenants' names and the cluster's
instance apart change  an instance's specification; what of it has nodes of its own; that it was written
rules                  throttle rules
applied                what a broker has made of specifications
mastership             which master is active
report grant rows      what a broker tells the master, and is answered; what both are about, and in which unit
throttled              an interval in which an instance had to wait
usage sizes            a usage record; sizes in sentences
"""
