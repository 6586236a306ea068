"""The keystore file: the secrets of one node home, in deterministic CBOR, optionally under a passphrase.

The passphrase is stretched with Argon2id (RFC 9106) and the secrets are sealed with XSalsa20-Poly1305. The file is
mode 0600 and is replaced whole. What each key lets its holder read is in docs/threat-model.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from nacl.bindings import crypto_secretbox_easy, crypto_secretbox_NONCEBYTES, crypto_secretbox_open_easy
from nacl.exceptions import CryptoError
from nacl.pwhash import argon2id

from bnw.identity.inbox_keys import InboxKey, needs_successor, new_inbox_key, without_expired
from bnw.identity.keys import SEED_SIZE, SigningKey
from bnw.identity.private_file import read_private_file, write_private_file
from bnw.wire.cbor import Value, decode_map, encode
from bnw.wire.environment import Environment
from bnw.wire.errors import ExitStatus, InvalidError, LocalError
from bnw.wire.limits import GIB, KIB, MIB

FORMAT = "bnw.keystore/1"
MAX_KEYSTORE = 64 * KIB
MAX_INBOX_KEYS_KEPT = 16
MAX_KDF_MEMORY = 1 * GIB
MAX_KDF_PASSES = 16


@dataclass(frozen=True, slots=True)
class KdfCost:
    """Argon2id cost: passes, and memory in bytes. The default takes about half a second.

    Raises `InvalidError` (`kdf-cost`) out of bounds: a keystore must not be able to stall the node that opens it.
    """

    passes: int = 3
    memory: int = 256 * MIB

    def __post_init__(self) -> None:
        if not argon2id.OPSLIMIT_MIN <= self.passes <= MAX_KDF_PASSES:
            raise InvalidError("kdf-cost", f"{self.passes} passes; 1 to {MAX_KDF_PASSES} are allowed")
        # Argon2 counts memory in KiB and would pass over the rest, so that two files would mean the same.
        if not argon2id.MEMLIMIT_MIN <= self.memory <= MAX_KDF_MEMORY or self.memory % KIB:
            raise InvalidError("kdf-cost", f"{self.memory:,} bytes of memory; 8 KiB to 1 GiB in whole KiB are allowed")


@dataclass(frozen=True, slots=True)
class Keystore:
    """The secrets of one node: an identity, the transport key, and the inbox keys, newest last."""

    identity_seed: bytes = field(repr=False)
    transport_seed: bytes = field(repr=False)
    inbox_keys: tuple[InboxKey, ...] = field(repr=False)

    @property
    def signing_key(self) -> SigningKey:
        return SigningKey(self.identity_seed)


def new_keystore(environment: Environment) -> Keystore:
    """Fresh keys."""
    return Keystore(
        identity_seed=environment.random_bytes(SEED_SIZE),
        transport_seed=environment.random_bytes(SEED_SIZE),
        inbox_keys=(new_inbox_key(environment.random_bytes(SEED_SIZE), environment.now_ms()),),
    )


def rotated(keystore: Keystore, environment: Environment) -> Keystore:
    """The keystore with a new inbox key if one is due and without those past their grace; else the same object."""
    now = environment.now_ms()
    keys = without_expired(keystore.inbox_keys, now)
    if needs_successor(keys, now):
        keys = (*keys[-(MAX_INBOX_KEYS_KEPT - 1) :], new_inbox_key(environment.random_bytes(SEED_SIZE), now))
    return keystore if keys == keystore.inbox_keys else replace(keystore, inbox_keys=keys)


def save_keystore(
    path: Path,
    keystore: Keystore,
    environment: Environment,
    *,
    passphrase: str | None = None,
    cost: KdfCost | None = None,
) -> None:
    """Write the keystore, durably and whole.

    Raises `LocalError` (`write-failed`, `passphrase-text`, `out-of-memory`), and `InvalidError` (`keystore`) for one
    that could not be read again, before anything is written.
    """
    secrets = encode(_to_value(keystore))
    _from_value(decode_map(secrets, max_size=MAX_KEYSTORE))
    if passphrase is None:
        envelope: dict[str, Value] = {"format": FORMAT, "kdf": None, "secrets": secrets}
    else:
        cost = cost or KdfCost()
        salt = environment.random_bytes(argon2id.SALTBYTES)
        nonce = environment.random_bytes(crypto_secretbox_NONCEBYTES)
        sealed = crypto_secretbox_easy(secrets, nonce, _stretch(passphrase, salt, cost))
        kdf: dict[str, Value] = {
            "memory": cost.memory,
            "name": "argon2id",
            "nonce": nonce,
            "passes": cost.passes,
            "salt": salt,
        }
        envelope = {"format": FORMAT, "kdf": kdf, "secrets": sealed}
    write_private_file(path, encode(envelope))


def is_protected(path: Path) -> bool:
    """Whether the keystore needs a passphrase. Raises as `load_keystore` does."""
    return _read_envelope(path)["kdf"] is not None


def load_keystore(path: Path, *, passphrase: str | None = None) -> Keystore:
    """Read the keystore.

    Raises `LocalError`: those of `read_private_file`, `keystore-damaged`, `passphrase-needed`, `passphrase-wrong`,
    `passphrase-text` (it is not UTF-8) or `out-of-memory`.
    """
    envelope = _read_envelope(path)
    secrets, kdf = envelope["secrets"], envelope["kdf"]
    if not isinstance(secrets, bytes):
        raise _damaged(path, "the secrets are not bytes")
    if kdf is not None:
        if passphrase is None:
            raise LocalError(
                "passphrase-needed",
                "the keystore is protected by a passphrase",
                place=str(path),
                cure="set BNW_PASSPHRASE, give --passphrase-file, or run on a terminal to be asked",
                exit_status=ExitStatus.USAGE,
            )
        secrets = _unseal(path, kdf, secrets, passphrase)
    try:
        return _from_value(decode_map(secrets, max_size=MAX_KEYSTORE))
    except InvalidError as error:
        raise _damaged(path, str(error)) from error


def _read_envelope(path: Path) -> dict[str, Value]:
    data = read_private_file(path, max_size=MAX_KEYSTORE)
    try:
        envelope = decode_map(data, max_size=MAX_KEYSTORE)
    except InvalidError as error:
        raise _damaged(path, str(error)) from error
    if envelope.get("format") != FORMAT or set(envelope) != {"format", "kdf", "secrets"}:
        raise _damaged(path, f"not in the format {FORMAT}")
    return envelope


def _unseal(path: Path, kdf: Value, sealed: bytes, passphrase: str) -> bytes:
    if not isinstance(kdf, dict) or set(kdf) != {"memory", "name", "nonce", "passes", "salt"}:
        raise _damaged(path, "the passphrase parameters are not readable")
    passes, memory, salt, nonce = kdf["passes"], kdf["memory"], kdf["salt"], kdf["nonce"]
    if (
        kdf["name"] != "argon2id"
        or type(passes) is not int
        or type(memory) is not int
        or not isinstance(salt, bytes)
        or len(salt) != argon2id.SALTBYTES
        or not isinstance(nonce, bytes)
        or len(nonce) != crypto_secretbox_NONCEBYTES
    ):
        raise _damaged(path, "the passphrase parameters are not readable")
    try:
        cost = KdfCost(passes, memory)
    except InvalidError as error:
        raise _damaged(path, str(error)) from error
    key = _stretch(passphrase, salt, cost)
    try:
        return crypto_secretbox_open_easy(sealed, nonce, key)
    except CryptoError:
        raise LocalError(
            "passphrase-wrong",
            "the passphrase does not open the keystore",
            place=str(path),
            cure="try again; there is no way to recover keys without it, or from a file that was altered",
        ) from None


def _stretch(passphrase: str, salt: bytes, cost: KdfCost) -> bytes:
    try:
        return argon2id.kdf(32, passphrase.encode(), salt, opslimit=cost.passes, memlimit=cost.memory)
    except UnicodeEncodeError:
        raise LocalError(
            "passphrase-text",
            "the passphrase is not valid UTF-8",
            cure="give it from a terminal or file in UTF-8",
            exit_status=ExitStatus.USAGE,
        ) from None
    except CryptoError:
        raise LocalError(
            "out-of-memory",
            f"the passphrase cannot be stretched without {cost.memory:,} bytes of free memory",
            cure="free some memory and try again",
        ) from None


def _to_value(keystore: Keystore) -> dict[str, Value]:
    return {
        "identity": keystore.identity_seed,
        "inbox": [
            {"not_after": key.not_after, "not_before": key.not_before, "private": key.private}
            for key in keystore.inbox_keys
        ],
        "transport": keystore.transport_seed,
    }


def _from_value(value: Value) -> Keystore:
    fields = _exactly(value, "identity", "inbox", "transport")
    entries = fields["inbox"]
    if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_INBOX_KEYS_KEPT:
        raise InvalidError("keystore", f"1 to {MAX_INBOX_KEYS_KEPT} inbox keys are expected")
    keys = tuple(
        InboxKey(_bytes(entry["private"]), _integer(entry["not_before"]), _integer(entry["not_after"]))
        for entry in (_exactly(item, "not_after", "not_before", "private") for item in entries)
    )
    identity, transport = _bytes(fields["identity"]), _bytes(fields["transport"])
    if len(identity) != SEED_SIZE or len(transport) != SEED_SIZE:
        raise InvalidError("keystore", f"a seed is not {SEED_SIZE} bytes")
    return Keystore(identity, transport, keys)


def _exactly(value: Value, *names: str) -> dict[str, Value]:
    if not isinstance(value, dict) or set(value) != set(names):
        raise InvalidError("keystore", f"a map of exactly {', '.join(names)} is expected")
    return value


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise InvalidError("keystore", "bytes are expected")
    return value


def _integer(value: Value) -> int:
    if type(value) is not int:
        raise InvalidError("keystore", "an integer is expected")
    return value


def _damaged(path: Path, why: str) -> LocalError:
    return LocalError(
        "keystore-damaged",
        f"the keystore cannot be read: {why}",
        place=str(path),
        cure="restore it from a backup; without it this identity is lost",
        exit_status=ExitStatus.USAGE,
    )
