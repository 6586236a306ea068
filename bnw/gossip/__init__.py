"""Gossip of catalog objects: announce, check, forward (design section 10).

Every object passes `catalog_gossip` before it is stored, and is stored before it is forwarded. Gossip is fast and may
lose; `bnw.sync` repairs what it lost.
"""
