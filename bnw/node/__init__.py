"""A node: all layers put together, and the API for programs that embed one.

`node` is the API. `publishing` keeps what this identity says in the catalog up to date, `peering` keeps it connected,
`descriptors` brings what a capability links to, `following` keeps that for what is followed (`followed`: one capability
of it, `follow_records`: what survives a restart). `home` is the directory it lives in, `configuration` what may be set
there, `mail` the mailboxes and messages, `keeping` and `keepers` why blobs are kept, `providing`, `calling` and
`authority` the parts of calls, `spreading` how a node says goodbye, `environment` the real clock and randomness, and
`opening` puts a node together from real parts.
"""
