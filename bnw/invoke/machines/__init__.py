"""The two sides of one call as state machines: a state and an event give a state and effects. Pure, without I/O.

`table` is how a machine is written down and run, `provider` and `requester` are the two machines, `endings` what a call
can end with. `docs/calls.md` shows both as diagrams, which a test derives from the tables.

An effect that begins with `Keep` asks for a durable write, and the machine goes on at the event `Kept`, which says that
it will survive a crash. So every order between a write and what it guards can be read from the tables.
"""
