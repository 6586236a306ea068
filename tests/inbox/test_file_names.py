"""File names from strangers: one line of attack per test."""

from __future__ import annotations

import unicodedata
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bnw.inbox.file_names import safe_file_name
from bnw.wire.errors import InvalidError


def refused(name: str) -> bool:
    try:
        safe_file_name(name)
    except InvalidError as error:
        assert error.code == "file-name"
        assert error.cure
        return True
    return False


@pytest.mark.parametrize(
    "name",
    [
        "report.pdf",
        "report",
        "Ünïcödé – résumé.txt",
        "年次報告.pdf",
        "گزارش‌ها.pdf",
        "❤️ photo.jpg",
        "a b  c.txt",
        "archive.tar.gz",
        "console.log",
        "CON1.txt",
        "common.c",
        "a..b.txt",
        "a" * 255,
        "é" * 127,
        "$HOME.txt",
        "a;b&c.txt",
    ],
)
def test_ordinary_names_stay_as_they_are(name: str) -> None:
    assert safe_file_name(name) == name


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("photos/2024/cat.jpg", "cat.jpg"),
        ("/etc/passwd", "passwd"),
        ("C:\\Users\\x\\report.pdf", "report.pdf"),
        ("\\\\server\\share\\report.pdf", "report.pdf"),
        ("./report.pdf", "report.pdf"),
        ("a//b.txt", "b.txt"),
    ],
)
def test_directories_are_stripped(name: str, safe: str) -> None:
    assert safe_file_name(name) == safe


@pytest.mark.parametrize(
    "name",
    [
        "..",
        "../x",
        "../../etc/passwd",
        "a/../b",
        "a/..",
        "..\\x",
        "a\\..\\..\\b",
        "/..",
        ".. /x",
        " ../x",
        "\u2025/x",  # two dot leader: two dots where names are normalised
    ],
)
def test_traversal_is_refused(name: str) -> None:
    assert refused(name)


@pytest.mark.parametrize("name", ["a\uff0fb", "a\uff3cb", "..\uff0fetc", "a\u2100"])
def test_what_becomes_a_separator_where_names_are_normalised_is_refused(name: str) -> None:
    assert refused(name)


@pytest.mark.parametrize("name", ["", ".", "...", "/", "a/", "a\\", " ", ". .", "a/.", "a/ . "])
def test_a_name_of_which_nothing_is_left_is_refused(name: str) -> None:
    assert refused(name)


DEVICES = (
    "CON con nul NUL.txt aux.tar.gz COM1 com9.log LPT0 lpt\u00b9.txt CONIN$ conout$.txt CLOCK$ dir/nul a\\com3.txt"
)


@pytest.mark.parametrize("name", [*DEVICES.split(" "), "prn ", "PRN .txt", "\uff23\uff2f\uff2e"])
def test_device_names_are_refused_whatever_their_extension_or_case(name: str) -> None:
    assert refused(name)


@pytest.mark.parametrize(
    "name",
    ["a\0b", "a\nb", "a\rb", "a\tb", "a\x1b[31mb", "a\x7fb", "a\x85b", "a\u2028b", "invoice\u202efdp.exe", "a\u200fb"],
)
def test_control_and_direction_characters_are_refused(name: str) -> None:
    assert refused(name)


def test_a_name_of_more_than_255_bytes_is_refused_however_few_characters_it_has() -> None:
    assert refused("a" * 256)
    assert refused("é" * 128)
    assert refused("x/" * 200 + "short"), "directories count as well"


def test_text_that_is_no_unicode_is_refused() -> None:
    assert refused("a\udc80b")


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        (".bashrc", "_bashrc"),
        ("..bashrc", "_.bashrc"),
        ("-rf", "_rf"),
        ("~root", "_root"),
        ("a:b.txt", "a_b.txt"),
        ("report.txt:evil.exe", "report.txt_evil.exe"),
        ('a<b>c"d|e?f*g', "a_b_c_d_e_f_g"),
        ("report.txt. . ", "report.txt"),
        (" report.txt", "report.txt"),
    ],
)
def test_what_is_awkward_somewhere_is_replaced(name: str, safe: str) -> None:
    assert safe_file_name(name) == safe


TRICKY = st.text(
    st.one_of(st.sampled_from("./\\:~- \u2024\u2025\uff0f\uff3c\u2215NULCOM1$\u00b9"), st.characters()), max_size=40
)


@settings(max_examples=500)
@given(TRICKY)
@example("a/../b")
def test_whatever_comes_out_is_one_plain_part_of_a_path_everywhere(name: str) -> None:
    try:
        safe = safe_file_name(name)
    except InvalidError:
        return
    for form in (safe, unicodedata.normalize("NFC", safe), unicodedata.normalize("NFKC", safe)):
        for path in (PurePosixPath("/target") / form, PureWindowsPath("C:/target") / form):
            assert path.parent.name == "target"
            assert path.name == form
        assert not PureWindowsPath(form).is_reserved()
        assert form not in {"", ".", ".."}
    assert 1 <= len(safe.encode()) <= 255
    assert safe[0] not in ".-~"
    assert not set(safe) & set('<>:"|?*/\\')
    assert safe_file_name(safe) == safe
