"""The layer that understands descriptors; everything below it treats them as opaque bytes (design section 12).

A *profile* is a descriptor format. Each is a plug-in (`contract`) found through the entry-point group `bnw.profiles`
(`registry`), and `service` is the one door through which a node asks: what does this descriptor link to, what may an
input look like, is this input good. What the plug-ins share is here too: one strict JSON reader (`json_reader`), JSON
Schema checks (`schema_check`) and starter documents (`starter`). Two profiles ship with BNW: `capability`, its own, and
`openwop`, proof that the layer is open.

Nothing in this layer knows of the node, the network or the store: bytes go in, values and located errors come out.
"""
