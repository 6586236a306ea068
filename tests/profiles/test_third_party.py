"""Plug-ins of other distributions: installed for real, found, used, and contained when they misbehave."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import psutil
import pytest
from profile_faults import EXAMPLE

from bnw.profiles.registry import MAX_PLUGINS, OWN, PluginSource, find_plugins
from bnw.profiles.service import MAX_FAILURES, ProfileService
from bnw.profiles.worker_client import Bounds
from bnw.wire.content_id import content_id
from bnw.wire.errors import LocalError

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MIB = 1024 * 1024
TIGHT = Bounds(call_seconds=0.5, memory_bytes=300 * MIB)
OPAQUE = b"an unknown format"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory into which pip has installed the toy distribution."""
    site = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*command, "--disable-pip-version-check", "--target", site, HERE / "thirdparty"], check=True)
    return site


@pytest.fixture
def plugins(site: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, PluginSource]:
    """The installed plug-ins by name, with the directory on the path."""
    monkeypatch.syspath_prepend(str(site))
    return {source.name: source for source in find_plugins()}


@pytest.fixture
def service(plugins: dict[str, PluginSource]) -> Iterator[ProfileService]:
    """BNW's own plug-ins and the good toy."""
    with ProfileService(sources=[*OWN, plugins["toy-good"]], bounds=TIGHT) as service:
        yield service


def test_an_installed_plugin_is_found_after_bnws_own(plugins: dict[str, PluginSource]) -> None:
    assert list(plugins)[:2] == ["capability-profile-1", "openwop-capabilities"]
    good = plugins["toy-good"]
    assert (good.target, good.distribution, good.own) == ("toy_profile.good:Plugin", "toy-profile", False)
    assert sum(source.distribution == "toy-profile" for source in plugins.values()) == 9


def test_an_installed_plugin_answers_everything(service: ProfileService) -> None:
    schema = b"anything"
    document = f"toy Tim {content_id(schema).hex()}".encode()
    description = service.describe(document)
    assert description is not None
    assert (description.profile, description.title, description.valid) == ("toy/1", "Tim", True)
    assert [fact.value for fact in description.facts] == ["toy", ("a", "b")]
    assert service.links(document) == (content_id(schema),)
    limits = service.limits(document)
    assert limits is not None
    assert (limits.operation, limits.input.media_types, limits.input.max_bytes) == ("toy/run", ("text/plain",), 100)
    known = {content_id(schema): schema}
    assert service.check_input(document, known, "text/plain", b"please") == ()
    assert [error.code for error in service.check_input(document, {}, "text/plain", b"please")] == ["toy-schema"]
    assert [error.pointer for error in service.check_input(document, known, "text/plain", b"now")] == ["/0"]
    assert [error.code for error in service.check_input(document, known, "text/html", b"x")] == ["media-type-refused"]
    assert [error.code for error in service.check_input(document, known, "text/plain", b"x" * 101)] == [
        "payload-too-large"
    ]
    assert service.check_output(document, known, "text/plain", b"whatever") == ()
    assert service.starter(document, {}) == b"please"
    assert service.draft("toy/1") == "// a toy\ntoy name -\n"
    assert service.faults() == ()


def test_an_invalid_document_of_an_installed_format_has_located_errors(service: ProfileService) -> None:
    description = service.describe(b"toy too many words here")
    assert description is not None
    assert [(error.code, error.hint) for error in description.errors] == [("toy-words", "write toy NAME SCHEMA")]
    assert (description.links, description.limits) == ((), None)
    assert [error.code for error in service.check_input(b"toy x", {}, "text/plain", b"")] == ["descriptor-invalid"]


def test_other_documents_are_unaffected_by_an_installed_plugin(service: ProfileService) -> None:
    assert service.describe(OPAQUE) is None
    description = service.describe(EXAMPLE)
    assert description is not None
    assert description.profile == "bnw.capability-profile/1"


def test_the_plugins_code_never_runs_in_this_process(service: ProfileService) -> None:
    service.describe(b"toy Tim -")
    assert not any(name.startswith("toy_profile") for name in sys.modules)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("raising", "plugin-failed"),
        ("exiting", "plugin-crashed"),
        ("crashing", "plugin-crashed"),
        ("hanging", "plugin-hung"),
        ("sleeping", "plugin-hung"),
        ("hungry", "plugin-crashed"),
        ("unloadable", "plugin-failed"),
    ],
)
def test_a_misbehaving_plugin_costs_only_its_own_answer(plugins: dict[str, PluginSource], name: str, code: str) -> None:
    document = f"{name} document".encode()
    with ProfileService(sources=[*OWN, plugins[f"toy-{name}"], plugins["toy-good"]], bounds=TIGHT) as service:
        start = perf_counter()
        assert service.describe(document) is None, "a document that nobody can read is opaque"
        assert perf_counter() - start < 5
        assert [fault.code for fault in service.faults()] == [code]
        assert service.links(document) == ()
        assert service.limits(document) is None
        assert service.check_input(document, {}, "text/plain", b"") == ()
        assert service.starter(document, {}) is None
        toy = service.describe(b"toy Tim -")
        assert toy is not None
        assert toy.title == "Tim"
        example = service.describe(EXAMPLE)
        assert example is not None
        assert example.valid


def test_a_worker_that_died_is_started_again(plugins: dict[str, PluginSource]) -> None:
    with ProfileService(sources=[plugins["toy-crashing"]], bounds=TIGHT) as service:
        for number in range(2):
            assert service.describe(f"crashing {number}".encode()) is None
            fine = service.describe(b"crashing not")
            if number == 0:
                assert fine is not None
        assert [fault.code for fault in service.faults()] == ["plugin-crashed"] * 2


def test_a_plugin_that_fails_again_and_again_is_no_longer_asked(plugins: dict[str, PluginSource]) -> None:
    with ProfileService(sources=[plugins["toy-raising"]], bounds=TIGHT) as service:
        for number in range(MAX_FAILURES + 3):
            assert service.describe(f"raising {number}".encode()) is None
        assert len(service.faults()) == MAX_FAILURES
        (state,) = service.plugins()
        assert not state.working
        assert state.last_failure is not None
        assert state.last_failure.startswith("plugin-failed: ValueError")


@pytest.mark.parametrize("lie", ["link", "links", "none", "size", "privacy", "types", "limits", "operation", "title"])
def test_an_answer_of_the_wrong_form_is_a_failure(plugins: dict[str, PluginSource], lie: str) -> None:
    for mode in ("contained", "inline"):
        with ProfileService(mode=mode, sources=[plugins["toy-lying"]], bounds=TIGHT) as service:  # type: ignore[arg-type]  # the mode is any of the parameters
            assert service.describe(f"lying {lie}".encode()) is None
            assert [fault.code for fault in service.faults()] == ["plugin-failed"]


def test_overlong_texts_are_cut_and_wrong_answers_to_checks_refuse_the_payload(
    plugins: dict[str, PluginSource],
) -> None:
    with ProfileService(sources=[plugins["toy-lying"]], bounds=TIGHT) as service:
        description = service.describe(b"lying long")
        assert description is not None
        assert len(description.title) < 10_000
        assert [error.code for error in service.check_input(b"lying ok", {}, "text/plain", b"")] == ["plugin-failed"]
        assert service.starter(b"lying ok", {}) is None


def test_workers_end_with_the_service(plugins: dict[str, PluginSource]) -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with ProfileService(sources=[plugins["toy-good"], plugins["toy-hanging"]], bounds=TIGHT) as service:
        service.describe(OPAQUE)
        during = {child.pid for child in psutil.Process().children(recursive=True)} - before
        assert len(during) == 2
    after = {child.pid for child in psutil.Process().children(recursive=True)}
    assert not during & after


def test_a_worker_sees_neither_the_environment_nor_the_terminal(
    plugins: dict[str, PluginSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BNW_PASSPHRASE", "secret")
    with ProfileService(sources=[plugins["toy-good"]], bounds=TIGHT) as service:
        before = {child.pid for child in psutil.Process().children()}
        service.describe(OPAQUE)
        (worker,) = [child for child in psutil.Process().children() if child.pid not in before]
        assert "BNW_PASSPHRASE" not in worker.environ()
        assert Path(f"/proc/{worker.pid}/fd/2").readlink() == Path("/dev/null")


def test_inline_mode_contains_exceptions_too(plugins: dict[str, PluginSource]) -> None:
    with ProfileService(mode="inline", sources=[plugins["toy-raising"], plugins["toy-good"]]) as service:
        assert service.describe(b"raising x") is None
        assert [fault.code for fault in service.faults()] == ["plugin-failed"]
        assert service.check_input(b"toy Tim -", {}, "text/plain", b"please") == ()


def test_more_plugins_than_allowed_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    info = tmp_path / "many-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: many\nVersion: 1\n")
    lines = [f"p{number} = many.m{number}:P" for number in range(MAX_PLUGINS + 1)]
    (info / "entry_points.txt").write_text("[bnw.profiles]\n" + "\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(LocalError, match="33 profile plug-ins"):
        find_plugins()


def test_the_command_line_uses_installed_plugins(site: Path, tmp_path: Path) -> None:
    document = tmp_path / "toy.txt"
    document.write_bytes(b"toy Tim -")
    code = "from bnw.profiles.command import main; main()"
    environment = {"PYTHONPATH": f"{site}:{ROOT}", "PATH": "/usr/bin:/bin"}
    run = subprocess.run(
        [sys.executable, "-c", code, "inspect", "--json", document],
        env=environment, capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    answer = json.loads(run.stdout)
    assert (answer["profile"], answer["title"], answer["valid"]) == ("toy/1", "Tim", True)
