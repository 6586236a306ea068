"""Vectors of identities: did:key, and signatures with every way in which a lenient verifier goes wrong."""

from __future__ import annotations

import base58

from bnw.identity.keys import SigningKey, did_key
from vector_cases.forms import Json

PUBLISHED_SEEDS = tuple(bytes(31) + bytes([last]) for last in range(5))
"""Seeds of the test vectors that come with the did:key method specification."""

# RFC 8032 section 7.1: seed, public key, message, signature.
RFC_8032 = (
    (
        "RFC 8032 test 1",
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595b"
        "be24655141438e7a100b",
    ),
    (
        "RFC 8032 test 2",
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb430"
        "2aeeb00d291612bb0c00",
    ),
    (
        "RFC 8032 test 3",
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716e"
        "d28dc027beceea1ec40a",
    ),
)

GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493
IDENTITY_POINT = bytes([1]) + bytes(31)
"""The neutral element of the curve as a public key. It "signs" everything with the same bytes."""
ORDER_TWO_POINT = (2**255 - 20).to_bytes(32, "little")


def identities() -> Json:
    return {
        "about": "Identities are Ed25519 public keys. `did_keys` have the one text form of each, `signatures` what a "
        "key signs and what does not count as its signature.",
        "did_keys": [
            {
                "name": f"did:key test vector {seed[-1]}",
                "seed": seed.hex(),
                "identity": SigningKey(seed).identity.hex(),
                "did": did_key(SigningKey(seed).identity),
            }
            for seed in PUBLISHED_SEEDS
        ],
        "refused_did_keys": [
            {"name": name, "text": text, "code": "did-key", "reason": reason} for name, text, reason in _bad_did_keys()
        ],
        "signatures": [
            {"name": name, "seed": seed, "identity": public, "message": message, "signature": signature}
            for name, seed, public, message, signature in RFC_8032
        ],
        "refused_signatures": [
            {
                "name": name,
                "identity": identity.hex(),
                "message": message.hex(),
                "signature": signature.hex(),
                "reason": reason,
            }
            for name, identity, message, signature, reason in _bad_signatures()
        ],
    }


def _bad_did_keys() -> list[tuple[str, str, str]]:
    good = did_key(SigningKey(PUBLISHED_SEEDS[0]).identity)
    key = SigningKey(PUBLISHED_SEEDS[0]).identity

    def coded(raw: bytes) -> str:
        return "did:key:z" + base58.b58encode(raw).decode()

    return [
        ("nothing", "", "it is empty"),
        ("another method", good.replace("did:key:", "did:web:"), "the method is not key"),
        ("capital letters in the scheme", good.replace("did", "DID"), "the scheme is lowercase"),
        ("another base", "did:key:f" + "ed01" + key.hex(), "only base58, which z stands for, is accepted"),
        ("a key for encryption", coded(b"\xec\x01" + key), "the prefix ec01 stands for X25519"),
        ("a key of secp256k1", coded(b"\xe7\x01" + key), "the prefix e701 stands for secp256k1"),
        ("a prefix in three bytes", coded(b"\xed\x81\x00" + key), "the prefix ed01 is written longer than it need be"),
        ("31 bytes", coded(b"\xed\x01" + key[:-1]), "the key is a byte short"),
        ("33 bytes", coded(b"\xed\x01" + key + b"\0"), "the key is a byte long"),
        ("no key", "did:key:z", "there is nothing behind the prefix"),
        ("a space at the end", good + " ", "white space is not accepted around it"),
        ("a line break at the end", good + "\n", "white space is not accepted around it"),
        ("a zero digit", good[:-1] + "0", "0 is not a digit of base58"),
        ("a letter outside ASCII", good[:-1] + "é", "é is not a digit of base58"),
        ("a leading one", good.replace("z6Mk", "z16Mk"), "the digit 1 in front stands for a zero byte before the key"),
        ("a fragment", f"{good}#{good[8:]}", "it names a key within a document, not an identity"),
        ("far too long", "did:key:z" + "1" * 1000, "it is refused for its length before it is decoded"),
    ]


def _bad_signatures() -> list[tuple[str, bytes, bytes, bytes, str]]:
    key = SigningKey(PUBLISHED_SEEDS[1])
    other = SigningKey(PUBLISHED_SEEDS[2])
    message = b"pay one"
    good = key.sign(message)
    point, scalar = good[:32], int.from_bytes(good[32:], "little")
    larger = (scalar + GROUP_ORDER).to_bytes(32, "little")
    return [
        ("another message", key.identity, b"pay two", good, "the message is not the one that was signed"),
        ("another key", other.identity, message, good, "somebody else signed it"),
        ("one bit", key.identity, message, good[:-1] + bytes([good[-1] ^ 1]), "a bit of the signature is changed"),
        ("63 bytes", key.identity, message, good[:-1], "a signature has 64 bytes"),
        ("65 bytes", key.identity, message, good + b"\0", "a signature has 64 bytes"),
        ("nothing", key.identity, message, b"", "there is no signature"),
        ("zeros", key.identity, message, bytes(64), "it is no signature"),
        ("the scalar plus the group order", key.identity, message, point + larger,
         "it solves the equation, but a second signature of one message would give one object two ids"),
        ("a key that signs everything", IDENTITY_POINT, message, IDENTITY_POINT + bytes(32),
         "the key is the neutral element: the equation holds for every message"),
        ("a key of order two", ORDER_TWO_POINT, message, IDENTITY_POINT + bytes(32),
         "the key has small order: the equation holds for every other message"),
        ("a key that is no point", bytes([2]) + bytes(31), message, good, "no point of the curve has this encoding"),
        ("a key of 31 bytes", key.identity[:-1], message, good, "a key has 32 bytes"),
    ]  # fmt: skip
