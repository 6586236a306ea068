"""One call, from both sides (design section 11).

`resolve` finds capabilities, offers and keys in the catalog, of which `catalog_cache` remembers what was read;
`requester` seals, signs, sends and verifies; `provider` accepts durably, checks, runs and answers, with `checks` and
`journal` as its pure parts; `handlers` are what it runs and `policy` who may call. `outbox` keeps receipts that could
not be delivered. `descriptors` is all that this layer knows of descriptors: what to ask of a plug-in.
"""
