"""Scenario files: what is simulated, what goes wrong, and what must hold all the same.

`schema` has every table and key, `reading` turns TOML into it and says what is wrong, `checking` finds contradictions
between tables, and `load_scenario` does it all. docs/simulation.md describes the format for people.
"""

from bnw.sim.scenario.checking import load_scenario, read_scenario
from bnw.sim.scenario.schema import Scenario

__all__ = ["Scenario", "load_scenario", "read_scenario"]
