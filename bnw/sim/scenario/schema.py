"""Every table and key of a scenario file. The metadata of a field is its documentation; see docs/simulation.md.

Times are seconds of virtual time, sizes bytes. `by`, `of` and `role` name groups of nodes by their role.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from bnw.sim.regions import REGIONS
from bnw.sim.scenario import keys
from bnw.transport.memory.chance import EXPONENTIAL, FIXED, SHAPES, UNIFORM
from bnw.wire.limits import KIB, MAX_DESCRIPTOR, MIB

FULL: Final = "full"
RING: Final = "ring"
STAR: Final = "star"
RANDOM_REGULAR: Final = "random-regular"
SMALL_WORLD: Final = "small-world"
SCALE_FREE: Final = "scale-free"
TOPOLOGIES: Final = (FULL, RING, STAR, RANDOM_REGULAR, SMALL_WORLD, SCALE_FREE)

ALL: Final = "all"
ROLES: Final = "roles"

INVALID_FLOOD: Final = "invalid-flood"
SPAM: Final = "spam"
WITHHOLD: Final = "withhold"
WRONG_BLOBS: Final = "wrong-blobs"
EQUIVOCATE: Final = "equivocate"
REPLAY: Final = "replay"
SILENT: Final = "silent"
SYBIL_OFFERS: Final = "sybil-offers"
CENSOR: Final = "censor"
ADVERSARIES: Final = (
    INVALID_FLOOD,
    SPAM,
    WITHHOLD,
    WRONG_BLOBS,
    EQUIVOCATE,
    REPLAY,
    SILENT,
    SYBIL_OFFERS,
    CENSOR,
)

MAX_PAYLOAD: Final = 8 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """`[network]`: how nodes are connected, and what lies between them."""

    topology: str = keys.choice("Who is connected with whom", TOPOLOGIES, RANDOM_REGULAR)
    degree: int = keys.count(
        "Connections of a node: exact when random-regular, about when small-world or scale-free", 4
    )
    rewire: float = keys.share("small-world: how many of the edges lead somewhere else than to a near node", 0.1)
    regions: tuple[str, ...] = keys.names(
        f"Nodes are spread evenly over these regions, and latencies come from a published table: {', '.join(REGIONS)}",
        (),
    )
    near: float = keys.share(
        "With regions: how many of a node's connections are to its own region at least, about", 0.0
    )
    latency: float = keys.duration("One way, between any two nodes; with regions, in addition to the table", 0.02)
    jitter: float = keys.duration("Mean of what is added to the latency of each entry", 0.0)
    jitter_shape: str = keys.choice("Distribution of the jitter", SHAPES, UNIFORM)
    loss: float = keys.share("Packets that are lost and sent again", 0.0)
    gossip_loss: float = keys.share("Gossip messages that are lost for good", 0.0)
    bandwidth: float | None = keys.speed("Of each link, each way; unlimited without it", None)
    message_cost: int = keys.size(
        "Added to the size of each entry, for headers below the ones that are counted", 0, most=KIB
    )
    identity_records: str = keys.choice(
        "Who publishes an identity record: all, or only nodes that provide or invoke (roles)", (ALL, ROLES), ALL
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """`[[nodes]]`: a group of honest nodes."""

    role: str = keys.name("What the other tables call the group; its nodes are <role>-0, <role>-1, …")
    count: int = keys.count("How many")
    start: float = keys.duration("When they join", 0.0)
    spread: float = keys.duration("They join one after the other within this time", 0.0)
    latency: float = keys.duration("Added to the latency of each of their links", 0.0)
    bandwidth: float | None = keys.speed("Of each of their links, if lower than the network's", None)
    clock_skew: float = keys.duration("Each clock is wrong by up to so much, either way, from the start", 0.0)
    clock_offset: float = keys.duration("Each clock is wrong by exactly so much, in addition", 0.0, negative=True)
    clock_drift: float = keys.number(
        "Each clock is fast or slow by up to so many parts per million", 0.0, least=0, most=1e5
    )
    write_time: float = keys.duration(
        "How long the disk takes to make something durable; a crash loses what waits", 0.0
    )
    connected: bool = keys.switch("Whether they take part in the topology; else only `to` connects them", True)
    to: tuple[str, ...] = keys.names("Roles; each node also connects to one random node of each of these", ())
    mailboxes: tuple[str, ...] = keys.names("Roles whose nodes, up to four, all hold the mail of each node", ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """`[[publish]]`: nodes publish capabilities."""

    by: str = keys.name("The role whose nodes publish")
    count: int = keys.count("Capabilities of each node", 1, most=2000)
    start: float = keys.duration("When the first is published", 5.0)
    every: float = keys.duration("Between two of one node", 1.0)
    size: int = keys.size("Of the descriptor, which is opaque bytes", 512, most=MAX_DESCRIPTOR)
    versions: int = keys.count("Times that each is published, each time with a new descriptor", 1, most=100)
    withdraw_after: float | None = keys.duration("Each is withdrawn so long after its last version", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provide:
    """`[[provide]]`: nodes publish capabilities and answer calls of them."""

    by: str = keys.name("The role whose nodes provide")
    capabilities: int = keys.count("Capabilities of each node", 1, most=100)
    start: float = keys.duration("When they begin", 5.0)
    thinking: float = keys.duration("Mean time that an answer takes", 0.1)
    thinking_shape: str = keys.choice("Distribution of that time", SHAPES, FIXED)
    output: int = keys.size("Of each answer", 256, most=MAX_PAYLOAD)
    renew: float | None = keys.duration("Offers are renewed so often; else as the node does by itself", None, least=1.0)
    open: bool = keys.switch("Whether anyone may provide the same capability, as Sybil offers do", False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoke:
    """`[[invoke]]`: nodes call capabilities of providers, each time one of them by chance."""

    by: str = keys.name("The role whose nodes call")
    of: str = keys.name("The role that provides")
    count: int = keys.count("Calls of each node", 1, most=10_000)
    start: float = keys.duration("When the first is made", 15.0)
    every: float = keys.duration("Mean time between two of one node", 5.0)
    every_shape: str = keys.choice("Distribution of that time", SHAPES, EXPONENTIAL)
    input: int = keys.size("Of each input", 256, most=MAX_PAYLOAD)
    deadline: float = keys.duration("Of each call", 30.0, least=1.0)
    take_up: bool = keys.switch(
        "Whether calls are taken up again after a crash or their deadline, until settled", False
    )
    copies: int = keys.count("Times that other nodes deliver each invocation once more, later", 0, least=0, most=8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """`[[fetch]]`: nodes look at each capability of `of` that they know, descriptor included."""

    by: str = keys.name("The role whose nodes look")
    of: str = keys.name("The role that publishes")
    start: float = keys.duration("When the first looks", 15.0)
    spread: float = keys.duration("They begin one after the other within this time", 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """`[[follow]]`: nodes follow all that some publishers publish, and serve it."""

    by: str = keys.name("The role whose nodes follow")
    of: str = keys.name("The role that is followed")
    start: float = keys.duration("When they begin", 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Churn:
    """`[[churn]]`: nodes go and come back, again and again."""

    role: str = keys.name("The role whose nodes come and go")
    share: float = keys.share("How many of them", 1.0)
    session: float = keys.duration("Mean time that one stays", least=0.1)
    session_shape: str = keys.choice("Distribution of that time", SHAPES, EXPONENTIAL)
    pause: float = keys.duration("Mean time that one is away", least=0.1)
    pause_shape: str = keys.choice("Distribution of that time", SHAPES, EXPONENTIAL)
    start: float = keys.duration("No one goes before", 0.0)
    stop: float | None = keys.duration("All are back from then on; the end of the scenario without it", None)
    crash: bool = keys.switch("Whether they vanish without a word instead of saying goodbye", True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """`[[crash]]`: nodes vanish at one moment, perhaps with damage to their disks."""

    role: str = keys.name("The role whose nodes crash")
    count: int = keys.count("How many, by chance", 1)
    at: float = keys.duration("When")
    back_after: float | None = keys.duration("How long until they are back; never without it", None)
    unsynced: float = keys.duration(
        "A disk that lies: it loses what was written within this time before the crash", 0.0
    )
    full_for: float = keys.duration("Before the crash, the disk is full for so long", 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """`[[leave]]`: nodes go for good."""

    role: str = keys.name("The role whose nodes go")
    count: int | None = keys.count("How many, by chance; all without it", None)
    at: float = keys.duration("When")
    crash: bool = keys.switch("Whether they vanish without a word", False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """`[[partition]]`: nothing passes between one part of the network and the rest."""

    at: float = keys.duration("When")
    heal: float = keys.duration("When it is over")
    share: float = keys.share("How many of all nodes are in the part, by chance", 0.5)
    regions: tuple[str, ...] = keys.names("Instead of chance: all nodes of these regions", ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """`[[clock]]`: clocks jump."""

    role: str = keys.name("The role whose clocks jump")
    at: float = keys.duration("When")
    by: float = keys.duration("How far; minus is backwards", negative=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adversary:
    """`[[adversary]]`: nodes that attack. They have places in the topology as honest ones have, or a victim."""

    kind: str = keys.choice("What they do", ADVERSARIES)
    count: int = keys.count("How many", 1)
    start: float = keys.duration("When they begin; they are connected from the start", 5.0)
    stop: float | None = keys.duration("When they end", None)
    rate: float = keys.number("Messages a second of each, for floods, spam and replay", 10.0, least=0.01, most=10_000)
    victim: str | None = keys.name(
        "A role: all connect to its first node, which has no other neighbours but `spared`", None
    )
    spared: int = keys.count("With a victim: how many honest neighbours it keeps", 1, least=0, most=1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """`[[expect]]`: what must hold. All expectations together decide the exit status."""

    metric: str = keys.text("One of the metrics", most=64)
    at_least: float | None = keys.number("The metric is at least this", None, least=-1e15, most=1e15)
    at_most: float | None = keys.number("The metric is at most this", None, least=-1e15, most=1e15)
    at: float | None = keys.duration("When the metric is looked at; at the end without it", None)
    why: str | None = keys.text("What it is good for; shown in the report", None, most=300)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A whole file."""

    title: str = keys.text("A few words", most=100)
    about: str = keys.text("A paragraph: what the scenario shows")
    duration: float = keys.duration("Virtual time to run", least=1.0)
    network: Network = field(default_factory=Network)
    nodes: tuple[Nodes, ...] = ()
    publish: tuple[Publish, ...] = ()
    provide: tuple[Provide, ...] = ()
    invoke: tuple[Invoke, ...] = ()
    fetch: tuple[Fetch, ...] = ()
    follow: tuple[Follow, ...] = ()
    churn: tuple[Churn, ...] = ()
    crash: tuple[Crash, ...] = ()
    leave: tuple[Leave, ...] = ()
    partition: tuple[Partition, ...] = ()
    clock: tuple[Clock, ...] = ()
    adversary: tuple[Adversary, ...] = ()
    expect: tuple[Expect, ...] = ()

    @property
    def honest(self) -> int:
        return sum(group.count for group in self.nodes)

    @property
    def adversaries(self) -> int:
        return sum(group.count for group in self.adversary)


TABLES: Final[dict[str, tuple[type[Any], bool]]] = {
    "network": (Network, False),
    "nodes": (Nodes, True),
    "publish": (Publish, True),
    "provide": (Provide, True),
    "invoke": (Invoke, True),
    "fetch": (Fetch, True),
    "follow": (Follow, True),
    "churn": (Churn, True),
    "crash": (Crash, True),
    "leave": (Leave, True),
    "partition": (Partition, True),
    "clock": (Clock, True),
    "adversary": (Adversary, True),
    "expect": (Expect, True),
}
"""Each table, and whether it is written with double brackets and may stand any number of times."""
