"""`bnw.capability-profile/1`: BNW's own descriptor format, one JSON document for one operation.

`parse` reads it, `text` knows what a name for people may contain, `plugin` is what the entry point names, `draft` is
the starting point that `bnw-profile new` writes. `proto/capability-profile-1.schema.json` has the same rules as a JSON
Schema.
"""
