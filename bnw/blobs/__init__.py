"""Blob exchange: fetch bytes by content id from any connected peer that has them (design section 4).

`protocol` is what goes over the wire, `server` answers, `fetcher` asks. Bytes become visible only after their hash has
matched. A peer that lies or stalls costs one attempt, and the next peer is asked.
"""
