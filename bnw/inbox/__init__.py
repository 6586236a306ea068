"""Mail: payloads sealed for exactly their recipients, and the delivery of inbox objects (design sections 8 and 9).

`padding` hides true sizes, `chunks` seals the bytes, `access` seals who may open them and how, `payload` puts the three
together under a signed manifest. `delivery` hands inbox objects to a peer and takes in those that are for us.
"""
