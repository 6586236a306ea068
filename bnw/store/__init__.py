"""What a node keeps: signed objects by id, scope and slot, blobs by content id, and small durable records of its own.

`interface` is the contract, `sqlite` keeps it on disk (an index in SQLite and blobs in files), `memory` keeps it in the
process for the simulator. Both pass the same tests. Objects and blobs that a store has acknowledged survive `kill -9`.
"""
