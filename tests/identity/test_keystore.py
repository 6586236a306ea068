"""The keystore (design section 7): 0600, whole, and under a passphrase of no use to whoever lacks it."""

from __future__ import annotations

import dataclasses
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from hypothesis import given
from hypothesis import strategies as st
from nacl.exceptions import CryptoError
from nacl.pwhash import argon2id
from nacl.secret import SecretBox

from bnw.identity.inbox_keys import InboxKey, new_inbox_key
from bnw.identity.keystore import (
    MAX_INBOX_KEYS_KEPT,
    MAX_KEYSTORE,
    KdfCost,
    Keystore,
    is_protected,
    load_keystore,
    new_keystore,
    rotated,
    save_keystore,
)
from bnw.wire.cbor import Value, decode_map, encode
from bnw.wire.errors import ExitStatus, InvalidError, LocalError
from bnw.wire.limits import DAY, GIB, KIB, MIB

NOW = 1_800_000_000_000
CHEAP = KdfCost(passes=1, memory=8 * KIB)
PASSPHRASE = "correct horse, Straße"


class Clock:
    """A time that the test sets, and bytes that never repeat."""

    def __init__(self, now: int = NOW) -> None:
        self.now = now
        self._drawn = 0

    def now_ms(self) -> int:
        return self.now

    def random_bytes(self, count: int) -> bytes:
        self._drawn += 1
        return self._drawn.to_bytes(count)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keystore"


@pytest.fixture
def keys() -> Keystore:
    return new_keystore(Clock())


def saved(path: Path, keys: Keystore, *, protected: bool = True) -> Path:
    save_keystore(path, keys, Clock(), passphrase=PASSPHRASE if protected else None, cost=CHEAP)
    return path


def altered(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the file's outer map."""
    envelope = decode_map(path.read_bytes(), max_size=MAX_KEYSTORE)
    change(envelope)
    path.write_bytes(encode(envelope))


def code_of_loading(path: Path, passphrase: str | None = PASSPHRASE) -> str:
    with pytest.raises(LocalError) as caught:
        load_keystore(path, passphrase=passphrase)
    return caught.value.code


# Saving and loading


@pytest.mark.parametrize("protected", [True, False])
def test_what_is_saved_is_loaded(path: Path, keys: Keystore, protected: bool) -> None:
    saved(path, keys, protected=protected)
    assert is_protected(path) == protected
    assert load_keystore(path, passphrase=PASSPHRASE if protected else None) == keys


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32), st.text(max_size=40))
def test_any_keys_and_any_passphrase_come_back(
    tmp_path_factory: pytest.TempPathFactory, identity: bytes, transport: bytes, passphrase: str
) -> None:
    path = tmp_path_factory.mktemp("home") / "keystore"
    keys = Keystore(identity, transport, (new_inbox_key(identity, NOW),))
    save_keystore(path, keys, Clock(), passphrase=passphrase, cost=CHEAP)
    assert load_keystore(path, passphrase=passphrase) == keys


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o777])
def test_a_keystore_that_others_may_access_is_not_loaded(path: Path, keys: Keystore, mode: int) -> None:
    saved(path, keys).chmod(mode)
    assert code_of_loading(path) == "not-private"
    with pytest.raises(LocalError):
        is_protected(path)
    path.chmod(0o600)
    assert load_keystore(path, passphrase=PASSPHRASE) == keys


def test_under_a_passphrase_no_secret_is_in_the_file(path: Path, keys: Keystore) -> None:
    secrets = [keys.identity_seed, keys.transport_seed, keys.inbox_keys[0].private]
    data = saved(path, keys).read_bytes()
    assert not any(secret in data for secret in secrets)
    data = saved(path, keys, protected=False).read_bytes()
    assert all(secret in data for secret in secrets), "the search finds what is there"


def test_salt_and_nonce_are_new_each_time(path: Path, keys: Keystore) -> None:
    clock = Clock()
    kept = []
    for _ in range(2):
        save_keystore(path, keys, clock, passphrase=PASSPHRASE, cost=CHEAP)
        kept.append(decode_map(path.read_bytes(), max_size=MAX_KEYSTORE))
    first, second = (envelope["kdf"] for envelope in kept)
    assert isinstance(first, dict) and isinstance(second, dict)
    assert first["salt"] != second["salt"]
    assert first["nonce"] != second["nonce"]
    assert kept[0]["secrets"] != kept[1]["secrets"]


def test_a_keystore_does_not_show_its_secrets(keys: Keystore) -> None:
    shown = repr(keys)
    assert not any(repr(secret) in shown for secret in (keys.identity_seed, keys.transport_seed))
    assert "private" not in shown


# Passphrases


@pytest.mark.parametrize("wrong", ["", "correct horse, Strasse", PASSPHRASE + " ", PASSPHRASE.upper()])
def test_a_wrong_passphrase_does_not_open_it(path: Path, keys: Keystore, wrong: str) -> None:
    assert code_of_loading(saved(path, keys), wrong) == "passphrase-wrong"


def test_without_a_passphrase_it_says_that_one_is_needed_and_how_to_give_it(path: Path, keys: Keystore) -> None:
    saved(path, keys)
    with pytest.raises(LocalError, match="BNW_PASSPHRASE") as caught:
        load_keystore(path)
    assert caught.value.code == "passphrase-needed"
    assert caught.value.exit_status is ExitStatus.USAGE


def test_a_passphrase_that_is_no_text_is_refused_before_anything_is_written(path: Path, keys: Keystore) -> None:
    with pytest.raises(LocalError) as caught:
        save_keystore(path, keys, Clock(), passphrase="\udcff", cost=CHEAP)
    assert caught.value.code == "passphrase-text"
    assert not path.exists()
    assert code_of_loading(saved(path, keys), "\udcff") == "passphrase-text"


def test_an_empty_passphrase_is_a_passphrase(path: Path, keys: Keystore) -> None:
    save_keystore(path, keys, Clock(), passphrase="", cost=CHEAP)
    assert is_protected(path)
    assert load_keystore(path, passphrase="") == keys


def test_the_key_is_made_with_argon2id_as_rfc_9106_names_it(path: Path, keys: Keystore) -> None:
    envelope = decode_map(saved(path, keys).read_bytes(), max_size=MAX_KEYSTORE)
    kdf: Any = envelope["kdf"]
    other = Argon2id(
        salt=kdf["salt"], length=32, iterations=kdf["passes"], lanes=1, memory_cost=kdf["memory"] // KIB
    ).derive(PASSPHRASE.encode())
    sealed: Any = envelope["secrets"]
    opened = decode_map(SecretBox(other).decrypt(sealed, kdf["nonce"]), max_size=MAX_KEYSTORE)
    assert kdf["name"] == "argon2id"
    assert opened["identity"] == keys.identity_seed


# Damage and tampering


def test_no_changed_byte_of_a_protected_keystore_goes_unnoticed(path: Path, keys: Keystore) -> None:
    data = saved(path, keys).read_bytes()
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 0x01
        path.write_bytes(changed)
        assert code_of_loading(path) in {"passphrase-wrong", "keystore-damaged"}, at


@pytest.mark.parametrize("protected", [True, False])
def test_a_keystore_cut_short_or_followed_by_something_is_damaged(path: Path, keys: Keystore, protected: bool) -> None:
    data = saved(path, keys, protected=protected).read_bytes()
    for other in [data[:size] for size in range(len(data))] + [data + b"\0"]:
        path.write_bytes(other)
        assert code_of_loading(path) == "keystore-damaged"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda file: file.update(format="bnw.keystore/2"), id="another version"),
        pytest.param(lambda file: file.update(comment="x"), id="a field more"),
        pytest.param(lambda file: file.pop("kdf"), id="a field less"),
        pytest.param(lambda file: file.update(secrets="text"), id="secrets that are text"),
        pytest.param(lambda file: file.update(kdf={}), id="no parameters"),
        pytest.param(lambda file: file.update(kdf="argon2id"), id="parameters that are text"),
        pytest.param(lambda file: file["kdf"].update(name="scrypt"), id="another function"),
        pytest.param(lambda file: file["kdf"].update(lanes=4), id="a parameter more"),
        pytest.param(lambda file: file["kdf"].update(salt=bytes(15)), id="a salt of 15 bytes"),
        pytest.param(lambda file: file["kdf"].update(nonce=bytes(23)), id="a nonce of 23 bytes"),
        pytest.param(lambda file: file["kdf"].update(passes=True), id="passes that are true"),
        pytest.param(lambda file: file["kdf"].update(memory="8192"), id="memory in text"),
        pytest.param(lambda file: file["kdf"].update(passes=0), id="no passes"),
        pytest.param(lambda file: file["kdf"].update(passes=17), id="17 passes"),
        pytest.param(lambda file: file["kdf"].update(memory=8 * KIB - 1), id="less than 8 KiB"),
        pytest.param(lambda file: file["kdf"].update(memory=GIB + 1), id="more than 1 GiB"),
        pytest.param(lambda file: file["kdf"].update(memory=2**53 - 1), id="8 PiB"),
        pytest.param(lambda file: file["kdf"].update(memory=-1), id="negative memory"),
        pytest.param(lambda file: file["kdf"].update(memory=8 * KIB + 1), id="a byte more than 8 KiB"),
    ],
)
def test_what_is_not_in_the_format_is_damaged_and_never_stretched(
    path: Path, keys: Keystore, monkeypatch: pytest.MonkeyPatch, change: Callable[[dict[str, Any]], None]
) -> None:
    altered(saved(path, keys), change)

    def stretch(*_: object, **__: object) -> bytes:
        raise AssertionError("the passphrase was stretched with parameters that nobody checked")

    monkeypatch.setattr(argon2id, "kdf", stretch)
    assert code_of_loading(path) == "keystore-damaged"


def secrets_of(keys: Keystore, **change: Value) -> Value:
    inbox: list[Value] = [
        {"not_after": key.not_after, "not_before": key.not_before, "private": key.private} for key in keys.inbox_keys
    ]
    return {"identity": keys.identity_seed, "inbox": inbox, "transport": keys.transport_seed, **change}


ENTRY: dict[str, Value] = {"not_after": 2, "not_before": 1, "private": bytes(32)}


@pytest.mark.parametrize(
    "change",
    [
        {"identity": bytes(31)},
        {"transport": "text"},
        {"inbox": []},
        {"inbox": [ENTRY] * (MAX_INBOX_KEYS_KEPT + 1)},
        {"inbox": [{**ENTRY, "private": bytes(31)}]},
        {"inbox": [{**ENTRY, "not_after": 1}]},
        {"inbox": [{**ENTRY, "not_after": True}]},
        {"inbox": [{**ENTRY, "use": "x"}]},
        {"inbox": {}},
        {"more": 1},
    ],
)
def test_secrets_that_make_no_sense_are_damaged(path: Path, keys: Keystore, change: dict[str, Value]) -> None:
    saved(path, keys, protected=False)
    altered(path, lambda file: file.update(secrets=encode(secrets_of(keys))))
    assert load_keystore(path) == keys
    altered(path, lambda file: file.update(secrets=encode(secrets_of(keys, **change))))
    assert code_of_loading(path, None) == "keystore-damaged"


def test_a_damaged_keystore_is_named_with_a_cure(path: Path) -> None:
    path.write_bytes(b"not a keystore")
    path.chmod(0o600)
    with pytest.raises(LocalError, match="backup") as caught:
        load_keystore(path)
    assert caught.value.place == str(path)


def test_a_file_of_any_size_costs_no_more_than_its_limit(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(GIB)
    path.chmod(0o600)
    tracemalloc.start()
    assert code_of_loading(path) == "too-large"
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MIB


# The cost of a passphrase


@pytest.mark.parametrize(("passes", "memory"), [(1, 8 * KIB), (16, 8 * KIB), (3, GIB)])
def test_a_cost_within_bounds_is_accepted(passes: int, memory: int) -> None:
    assert KdfCost(passes, memory).memory == memory


@pytest.mark.parametrize(
    ("passes", "memory"), [(0, MIB), (-1, MIB), (17, MIB), (3, 8 * KIB - 1), (3, GIB + 1), (3, 9000)]
)
def test_a_cost_out_of_bounds_is_refused(passes: int, memory: int) -> None:
    with pytest.raises(InvalidError) as caught:
        KdfCost(passes, memory)
    assert caught.value.code == "kdf-cost"


def test_the_default_cost_is_no_less_than_what_libsodium_advises_for_files() -> None:
    assert KdfCost().passes >= argon2id.OPSLIMIT_MODERATE
    assert KdfCost().memory >= argon2id.MEMLIMIT_MODERATE


def test_want_of_memory_is_said_and_nothing_is_written(
    path: Path, keys: Keystore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: object, **__: object) -> bytes:
        raise CryptoError("cannot allocate")

    monkeypatch.setattr(argon2id, "kdf", no_memory)
    with pytest.raises(LocalError) as caught:
        save_keystore(path, keys, Clock(), passphrase=PASSPHRASE, cost=CHEAP)
    assert caught.value.code == "out-of-memory"
    assert not path.exists()


# What could not be read again is never written


def test_too_many_inbox_keys_are_refused_before_the_old_file_is_touched(path: Path, keys: Keystore) -> None:
    saved(path, keys)
    many = dataclasses.replace(keys, inbox_keys=keys.inbox_keys * (MAX_INBOX_KEYS_KEPT + 1))
    with pytest.raises(InvalidError) as caught:
        save_keystore(path, many, Clock(), passphrase=PASSPHRASE, cost=CHEAP)
    assert caught.value.code == "keystore"
    assert load_keystore(path, passphrase=PASSPHRASE) == keys


def test_a_disk_that_fails_leaves_the_old_keystore(path: Path, keys: Keystore, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(path, keys)
    later = rotated(keys, Clock(NOW + 7 * DAY))
    assert later != keys

    def fail(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(LocalError) as caught:
            save_keystore(path, later, Clock(), passphrase=PASSPHRASE, cost=CHEAP)
    assert caught.value.code == "write-failed"
    assert load_keystore(path, passphrase=PASSPHRASE) == keys


# Rotation


def test_nothing_changes_while_a_key_is_good(keys: Keystore) -> None:
    assert rotated(keys, Clock(NOW + 6 * DAY - 1)) is keys


def test_a_new_key_joins_a_day_before_the_old_one_ends(keys: Keystore) -> None:
    later = rotated(keys, Clock(NOW + 6 * DAY))
    assert later.inbox_keys[:-1] == keys.inbox_keys
    assert later.inbox_keys[-1].not_after == NOW + 13 * DAY
    assert (later.identity_seed, later.transport_seed) == (keys.identity_seed, keys.transport_seed)


def test_after_its_grace_a_key_is_gone(keys: Keystore) -> None:
    much_later = rotated(keys, Clock(NOW + 21 * DAY + 1))
    assert keys.inbox_keys[0] not in much_later.inbox_keys
    assert len(much_later.inbox_keys) == 1


def test_a_clock_that_jumps_about_does_not_fill_the_keystore(path: Path, keys: Keystore) -> None:
    clock = Clock()
    for jump in range(40):
        clock.now = NOW + (jump % 2) * 19 * DAY + jump
        keys = rotated(keys, clock)
        saved(path, keys)
    assert len(keys.inbox_keys) <= MAX_INBOX_KEYS_KEPT


def test_a_year_of_rotation_keeps_few_keys_and_always_a_good_one(keys: Keystore) -> None:
    for day in range(365):
        clock = Clock(NOW + day * DAY)
        clock.random_bytes(8)
        keys = rotated(keys, clock)
        assert any(key.not_before <= clock.now < key.not_after for key in keys.inbox_keys)
        assert len(keys.inbox_keys) <= 4
        assert all(clock.now <= key.not_after + 14 * DAY for key in keys.inbox_keys)


def test_new_keys_are_all_different() -> None:
    fresh = new_keystore(Clock())
    assert len({fresh.identity_seed, fresh.transport_seed, fresh.inbox_keys[0].private}) == 3
    assert isinstance(fresh.inbox_keys[0], InboxKey)
    assert fresh.signing_key.seed == fresh.identity_seed
