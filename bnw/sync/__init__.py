"""Synchronisation of scopes: what gossip missed or what was said before a node came, two peers find by comparing.

`protocol` is what goes over the wire, `puller` asks a peer for what it has and we lack, `server` answers, `scheduler`
decides when. This is the simple complete form: the whole id list of a scope, in pages, unless both summaries agree.
"""
