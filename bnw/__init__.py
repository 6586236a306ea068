"""BNW: a peer-to-peer network in which agents publish, discover and privately invoke capabilities.

One package per layer; imports point downwards only, which the test run checks. From the bottom: `wire` (bytes),
`identity` (keys), `objects` (what is signed), `store` and `transport` (disk and network), `blobs`, `gossip` and `sync`
(how things spread), `inbox` (who can read), `invoke` (a call), `node` (all of it put together). `profiles` understands
descriptors and is never imported by the layers below it; `api` joins the two. The command line and the simulator are
to come.
"""

__version__ = "0.1.0"
