"""Blob exchange: fetch bytes by content id from any connected peer that has them (design section 4).

`protocol` is what goes over the wire and `server` answers. On the asking side, `plan` and `sources` decide what to ask
of whom, without I/O; `conversation` speaks with one source, `transfer` runs a plan, and `fetcher` is what others call.
Bytes become visible only after their hash has matched. A source that lies or stalls costs what it was asked for and has
not given, which is then asked of another.

`ahead` and `offload` are for whoever works through many blobs: several at once but in order, and off the event loop.
"""
