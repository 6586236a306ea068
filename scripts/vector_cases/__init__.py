"""What the golden vectors in `proto/vectors/` say. `scripts/make-vectors` writes them down; nothing here does I/O.

Every value comes from fixed seeds and times, so the files are the same on every run. Expected codes and reasons are
stated here by hand and never taken from what the code did: the tests compare the two. Byte strings within values stand
as `{"$bytes": "<hex>"}`, because JSON has none.
"""
