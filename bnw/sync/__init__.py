"""Synchronisation of scopes: what gossip missed or what was said before a node came, two peers find by comparing.

`negentropy` is the comparison itself, pure. Around it: `protocol` is what goes over the wire; `scope_index` keeps the
items of a scope in memory; `puller` compares with a peer and then has `fetch` ask for what is missing, over a `session`
on a stream; `checking` checks what comes; `wants` keeps the list of what is still missing in the store; `bounded` and
`backoff` remember what and whom to leave alone; `server` answers, and `inbox_access` says who may read an inbox;
`scheduler` decides when.

Only pulls change anything: a node takes what it lacks and gives what it is asked for. What the peer lacks is for the
peer to pull.
"""
