"""The Negentropy protocol, version 1: two sides find out in which items their sets differ, without sending the sets.

The idea. Both sides keep their items in the same order, by timestamp and then by id. One of them, the *initiator*, cuts
that order into ranges and sends a fingerprint of what it holds in each. The *responder* compares: where fingerprints
agree, nothing more is said; where they differ, it cuts the range further and sends fingerprints in turn, or, once a
range holds only a few items, their ids. Halving (by 16) goes back and forth until all differing ranges have shrunk to
lists of ids, from which the initiator reads off what the responder has and it lacks, and the reverse. Only the
initiator learns the difference, and only the initiator keeps anything in mind from one message to the next: that it is
the initiator. Ranges are named by bounds in the order, never by position, so either set may change between messages.

Nothing anywhere remembers "everything up to this time is done". An object that arrives late with an old timestamp
makes the fingerprint of its range differ the next time, however often that range has been compared before.

    message     = version byte 0x61, then ranges
    range       = upper bound (excluded), mode, payload; the lower bound is the upper bound before it
    bound       = varint of the timestamp, varint of a length from 0 to 32, and so many first bytes of an id
    timestamp   = 0 for infinity, else 1 + the difference to the last timestamp in this message
    mode 0      = skip: nothing to say here
    mode 1      = fingerprint: 16 bytes
    mode 2      = list: varint of a count, then ids
    varint      = base 128, most significant digit first, high bit set on all bytes but the last
    fingerprint = first 16 bytes of SHA-256 over the sum of the ids (as little-endian integers, modulo 2^256, written as
                  32 little-endian bytes) and the varint of how many there are

What follows the last range of a message is skipped. A message that would exceed the sender's frame limit ends early,
with one fingerprint over all that is left. So an id may be found more than once.

A sum of ids can be forged: whoever may choose ids freely can find different sets with equal sums (in about 2^80 steps
or fewer with many items). All that it wins is that two peers overlook a difference; each still checks every object.

`coding` reads and writes messages, `index` answers questions about an ordered set, `reconciler` is the two sides.
Everything here is pure: bytes in, bytes out.
"""
