"""What another size or plan would have cost in a month, and on how many days it would have been too small.

rules      days that went beyond a limit (pure)
selectors  both for an instance
api serializers  their REST
"""
