"""A study: from its YAML files to the list of what has to be computed.

`files` merges the YAML files, `config` checks them, `selection` leaves out what `only` does not name, `shards` says who
answers what.
"""
