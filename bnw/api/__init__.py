"""The edge between a node and the programs of this machine's user (design section 14).

`server` serves a node's local HTTP API on a Unix socket in its home, made of the `routes_*` modules; `client` is the
other end, which imports neither libp2p nor the node. `render` turns a node's values into the JSON of both. `profiles`
gives a node its descriptor plug-ins.
"""
