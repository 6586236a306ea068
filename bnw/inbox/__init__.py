"""Mail: payloads sealed for exactly their recipients, and the delivery of inbox objects (design sections 8 and 9).

`padding` hides true sizes, `chunks` seals the bytes, `access` seals who may open them and how, `manifest` puts the
three together and signs them. `payload` does it all in memory, for what is small. For what is not, `sealing` takes a
plaintext in as it comes (from a `file_source`, say), `transfer` fetches the chunks, and `opening` gives them back as a
stream or as a file (`file_names`, `part_file`), once `plaintext` has checked them. `delivery` hands inbox objects to a
peer and takes in those that are for us.

For those who are away: `post` leaves mail at their mailboxes over `mailbox_protocol` (`mailbox_refusals`); there
`carrier` holds it within `mailbox_rules`; `collector` brings it home. `messages` keeps what belongs to no call.
"""
