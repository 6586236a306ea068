from __future__ import annotations

from collections.abc import Sequence

import pytest
from places import MakePlace, Place

from bnw.node.configuration import Configuration
from bnw.node.home import Home
from bnw.node.opening import initialise_home


@pytest.fixture(scope="module")
def make_place(tmp_path_factory: pytest.TempPathFactory) -> MakePlace:
    """Makes a home that knows `peers`."""
    root = tmp_path_factory.mktemp("homes")

    def make(name: str, peers: Sequence[str] = ()) -> Place:
        home = Home(root / name)
        initialise_home(home, configuration=Configuration(peers=tuple(peers)))
        return Place(home)

    return make
