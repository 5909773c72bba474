"""REST of instances: the row with its addresses, its health and its use, which stand in apps above `instances`.

api serializers   the instance itself
elastic           bandwidth above what was bought
prepaid           paying for it in advance (prepaid_serializers: as JSON)
scheduled         changes of its sizes that are made later
certificates      its authority, and what its routes of TLS show
"""
