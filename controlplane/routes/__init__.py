"""Routes of an instance: opened, changed and removed while clients use the others. Their rows are in `instances`.

validation    what a route may be (pure)
services      each call checks, writes the row, and leaves the rest to an operation
provisioning  the steps of opening, changing and removing one
"""
