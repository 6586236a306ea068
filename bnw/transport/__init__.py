"""The network as the rest of BNW sees it: one small interface and two implementations.

`interface` is the contract. `memory` connects nodes within one process, for the simulator. `p2p` is libp2p (TCP,
Noise, Yamux, gossipsub 1.1), and the only place in BNW that imports it; each cure for an upstream fault has a module of
its own there, with the fault it cures.
"""
