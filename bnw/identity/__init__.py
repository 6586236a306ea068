"""Who someone is: Ed25519 identities in did:key form, X25519 inbox keys, and the keystore file that holds the secrets.

An identity signs; a node's transport key is a different key, so that moving a node does not move an identity; inbox
keys rotate, so that a key stolen today does not open last month's mail (design section 7). Only `keystore` and
`private_file` touch the disk.
"""
