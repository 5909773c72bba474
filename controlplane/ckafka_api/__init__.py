"""CKafka's API, for programs that were written for it: `/compat/ckafka` answers signed requests of the vendor's own SDK.

A thin layer, as REST is: `tc3` knows who asks, `shapes` what may be asked, `actions` translates to the services and back,
`errors` says refusals in the vendor's codes. No rule of the service stands here.
"""
