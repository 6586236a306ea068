"""What a node keeps: signed objects by id, scope and slot, blobs by content id, and small durable records of its own.

`interface` is the contract; `placement` decides, for every store alike, what becomes of an object that is put, with
`scopes` and `limits` to help; `watching` tells others of what has changed in a scope. `memory` keeps everything in the
process, for the simulator. `sqlite` keeps it on disk: `database` is the file and its schema, `writer` commits in groups
what `sqlite_index` changes, `readers` answer `sqlite_queries` beside it, `blob_files` holds larger blobs, and `faults`
says what went wrong below. Both stores pass the same tests. Objects and blobs that a store has acknowledged survive
`kill -9`.
"""
