"""The `bnw` command line. One module per theme, joined in `main`; nothing here is needed to embed a node.

Commands talk to the running node through `bnw.api.client`, or to one that `node_process` runs for their own duration.
Modules import only what `bnw --help` needs; the rest is imported where it is used, so that every command starts fast.
"""
