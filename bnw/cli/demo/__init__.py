"""`bnw demo`: the main job between three real processes, told step by step.

`example` finds the capability that is published, `scene` runs the nodes and the call, `search` looks for plaintext in
the carrier's home, and `command` is the command itself.
"""
