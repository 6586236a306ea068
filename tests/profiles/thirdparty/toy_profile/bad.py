"""Plug-ins that misbehave whenever they read a document that they claim, except a line that ends in `not`."""

from __future__ import annotations

import os
import signal
import threading

from bnw.profiles.contract import BaseProfile, Parsed


class Bad(BaseProfile[str]):
    """Claims lines that begin with `word`."""

    word = ""

    @property
    def identifier(self) -> str:
        return f"{self.word}/1"

    def claims(self, document: bytes) -> bool:
        return document.startswith(f"{self.word} ".encode())

    def parse(self, document: bytes, *, now_ms: int | None = None) -> Parsed[str]:
        if not document.endswith(b" not"):
            self.misbehave()
        return Parsed("fine")

    def misbehave(self) -> None:
        raise NotImplementedError


class Raising(Bad):
    word = "raising"

    def misbehave(self) -> None:
        raise ValueError("no \ud800 toy today")


class Exiting(Bad):
    word = "exiting"

    def misbehave(self) -> None:
        raise SystemExit(3)


class Crashing(Bad):
    word = "crashing"

    def misbehave(self) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)


class Hanging(Bad):
    word = "hanging"

    def misbehave(self) -> None:
        while True:
            pass


class Sleeping(Bad):
    word = "sleeping"

    def misbehave(self) -> None:
        threading.Event().wait()


class Hungry(Bad):
    word = "hungry"

    def misbehave(self) -> None:
        list(range(10**10))
