"""A study: from its YAML files to the list of what has to be computed.

`files` merges the YAML files, `sections` declares which keys they may have, `config` checks them with the help of
`references` and `checks` and explains problems with `messages`, `selection` leaves out what `only` does not name, and
`shards` lists which actor answers what.
"""
