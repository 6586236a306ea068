"""The answer to a question of authority, link by link, for programs and for people. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bnw.identity.keys import IdentityId, did_key
from bnw.invoke.authority.bounds import Bounds, Problem
from bnw.objects.authority import Delegation
from bnw.objects.signed import SignedObject
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError


@dataclass(frozen=True, slots=True)
class LinkFinding:
    """One link of the chain, and all that is wrong with it. `number` counts from 1 at the root.

    `delegation` is None for a link that is not here, or is no delegation.
    """

    number: int
    id: ContentId
    delegation: SignedObject | None
    problems: tuple[Problem, ...]

    def grants(self) -> Bounds | None:
        if self.delegation is None:
            return None
        assert isinstance(self.delegation.body, Delegation)
        return Bounds.of(self.delegation.body)

    def lines(self) -> list[str]:
        """For people: what it grants, then each problem with its cure."""
        if self.delegation is None:
            head = f"link {self.number}: {self.id.hex()}"
        else:
            assert isinstance(self.delegation.body, Delegation)
            head = (
                f"link {self.number}: {self.id.hex()}: {did_key(self.delegation.signer)} grants"
                f" {did_key(self.delegation.body.audience)}: {self.grants()}"
            )
        return [head, *(f"  {problem.code}: {problem.cause} ({problem.cure})" for problem in self.problems)]

    def to_json(self) -> dict[str, object]:
        delegation = self.delegation
        grants = self.grants()
        audience = delegation.body.audience if delegation and isinstance(delegation.body, Delegation) else None
        return {
            "number": self.number,
            "delegation": self.id.hex(),
            "issuer": None if delegation is None else did_key(delegation.signer),
            "audience": None if audience is None else did_key(audience),
            "grants": None if grants is None else str(grants),
            "problems": [
                {"code": problem.code, "message": problem.cause, "cure": problem.cure} for problem in self.problems
            ],
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the question is answered with yes, and why.

    `code` is stable. Yes: `open`, `listed`, `own-authority` or `delegated`. No: the code of the first problem, from the
    root down. `counted` are the links whose counters a call uses up when it runs on this verdict, and `root` is the
    first link. `max_input_bytes` is the tightest limit on an input whose size the question left open.
    """

    allowed: bool
    code: str
    cause: str
    cure: str | None = None
    place: str | None = None
    links: tuple[LinkFinding, ...] = ()
    root: ContentId | None = None
    counted: tuple[ContentId, ...] = ()
    max_input_bytes: int | None = None

    def require(self) -> None:
        """Raise `InvalidError` with the verdict's code unless it is a yes."""
        if not self.allowed:
            raise InvalidError(self.code, self.cause, place=self.place, cure=self.cure)

    def check_input(self, size: int) -> None:
        """Raise `InvalidError` (`input-too-large`) if an input of `size` bytes is more than the chain grants."""
        if self.max_input_bytes is not None and size > self.max_input_bytes:
            problem = input_too_large(size, self.max_input_bytes)
            raise InvalidError(problem.code, f"the chain {problem.cause}", cure=problem.cure)

    def refused(self, error: InvalidError) -> Verdict:
        """The same, but no, because of `error`."""
        return replace(
            self, allowed=False, code=error.code, cause=error.cause, cure=error.cure, place=error.place, counted=()
        )

    def lines(self) -> list[str]:
        """For people: yes or no and why, then every link."""
        word = "allowed" if self.allowed else "not allowed"
        where = "" if self.place is None else f"{self.place}: "
        cure = "" if self.cure is None else f" ({self.cure})"
        return [
            f"{word}: {self.code}: {where}{self.cause}{cure}",
            *(line for link in self.links for line in link.lines()),
        ]

    def to_json(self) -> dict[str, object]:
        return {
            "allowed": self.allowed,
            "code": self.code,
            "message": self.cause,
            "place": self.place,
            "cure": self.cure,
            "max_input_bytes": self.max_input_bytes,
            "counted": [id.hex() for id in self.counted],
            "links": [link.to_json() for link in self.links],
        }


def input_too_large(size: int, limit: int) -> Problem:
    return Problem(
        "input-too-large",
        f"covers inputs of at most {limit:,} bytes; this one has {size:,}",
        "send less, or ask for a delegation with a higher limit",
    )


def link_place(number: int, total: int, id: ContentId, issuer: IdentityId | None) -> str:
    """Where in a chain something is, as errors name it."""
    by = "" if issuer is None else f" by {did_key(issuer)}"
    return f"link {number} of {total} ({id.hex()}{by})"
