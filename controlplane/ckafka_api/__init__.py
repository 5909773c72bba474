"""CKafka's API, for programs that were written for it: `/compat/ckafka` answers signed requests of the vendor's own SDK.

A thin layer, as REST is. No rule of the service stands here.

middleware dispatch  from a request to its action, and from there to an answer
tc3 replay limits    who asks; that a captured request does nothing more; how often an action may be asked for
shapes errors        what may be asked, as the vendor's models say; refusals in the vendor's codes
actions              from parameters to a service's arguments, and back
"""
