"""What Terraform manages and looks up: one file for each.

catalogue                  all of them, by the names that configurations use
base                       what a resource is: attributes, and what is done to create, read, update and delete it
instance topic whitelist   the instance with its sizes and config; what is in it, and who may connect
user acl                   who may log in, and who may do what
throttle_rule              limits within an instance
lookups                    data sources: an instance by its name, the zones
"""
