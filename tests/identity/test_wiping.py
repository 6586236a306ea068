"""Secrets that leave a private file are gone from where they were on the disk (design section 7)."""

from __future__ import annotations

from pathlib import Path

from bnw.identity.keystore import load_keystore, new_keystore, rotated, save_keystore
from bnw.identity.private_file import write_private_file
from bnw.node.environment import SystemEnvironment
from bnw.wire.limits import DAY


def test_the_old_bytes_are_overwritten_in_place(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    write_private_file(path, b"last month's key" * 9000)
    with path.open("rb") as old:
        write_private_file(path, b"new")
        data = old.read()
    assert data == bytes(len(data))
    assert path.read_bytes() == b"new"


def test_a_copy_under_another_name_is_left_alone(tmp_path: Path) -> None:
    path, backup = tmp_path / "secrets", tmp_path / "backup"
    write_private_file(path, b"old")
    backup.hardlink_to(path)
    write_private_file(path, b"new")
    assert backup.read_bytes() == b"old"


def test_an_inbox_key_past_its_grace_is_in_no_file_of_the_home(tmp_path: Path) -> None:
    path = tmp_path / "keystore"
    first = new_keystore(SystemEnvironment())
    save_keystore(path, first, SystemEnvironment())
    key = first.inbox_keys[0].private
    with path.open("rb") as old:
        assert key in old.read()
        later = rotated(first, SystemEnvironment(clock_offset=30 * DAY))
        save_keystore(path, later, SystemEnvironment())
        old.seek(0)
        assert key not in old.read()
    assert key not in path.read_bytes()
    assert load_keystore(path).inbox_keys == later.inbox_keys
