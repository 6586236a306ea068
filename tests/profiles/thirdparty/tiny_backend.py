"""The smallest build backend: a wheel is a zip file with the package and three files about it."""

from __future__ import annotations

import zipfile
from pathlib import Path

BAD = ("raising", "exiting", "crashing", "hanging", "sleeping", "hungry")
PLUGINS = {"good": "good:Plugin", "lying": "lying:Plugin", "unloadable": "unloadable:Plugin"}
PLUGINS |= {name: f"bad:{name.title()}" for name in BAD}
ENTRY_POINTS = "[bnw.profiles]\n" + "".join(f"toy-{name} = toy_profile.{what}\n" for name, what in PLUGINS.items())
METADATA = "Metadata-Version: 2.1\nName: toy-profile\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: tiny\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    name = "toy_profile-1.0-py3-none-any.whl"
    info = "toy_profile-1.0.dist-info"
    files = {f"toy_profile/{path.name}": path.read_text() for path in sorted(Path("toy_profile").glob("*.py"))}
    files |= {f"{info}/METADATA": METADATA, f"{info}/WHEEL": WHEEL, f"{info}/entry_points.txt": ENTRY_POINTS}
    record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(Path(wheel_directory) / name, "w") as wheel:
        for path, text in [*files.items(), (f"{info}/RECORD", record)]:
            wheel.writestr(path, text)
    return name
