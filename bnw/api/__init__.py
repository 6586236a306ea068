"""The edge between a node and the programs of this machine's user (design section 14).

`profiles` gives a node its descriptor plug-ins. The HTTP API over a Unix socket is to come.
"""
