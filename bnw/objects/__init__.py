"""The signed objects (design section 6): what each says, how it is built, encoded and verified. Pure.

`fields` reads and writes single values; `body` turns a dataclass of such fields into a strict CBOR map; the kinds are
in `catalog`, `authority`, `mail` and `calls`; `envelope` is the COSE_Sign1 around them; `signed` puts a body and its
envelope together; `rules` says which object replaces which, who it is for, and when it counts as expired.
"""
