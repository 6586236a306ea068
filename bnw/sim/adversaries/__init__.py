"""What nodes do that mean harm. Each kind is a node that ships with some of its parts changed, or an attack beside it.

`shapes` changes parts: what a node stores, serves or withholds. `attacks` sends what no node that ships would send.
`silent` is no node at all. Adversaries take part in everything else, which is what makes them hard to tell.
"""
