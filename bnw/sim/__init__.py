"""The simulator: the nodes that ship, in one process, in virtual time, from a seed (design section 13).

    async def scenario() -> None:
        async with World(seed, trace=trace) as world:
            provider = await world.start("provider")
            requester = await world.start("requester", peers=["provider"])
            ...

    trace = EventTrace()
    run_virtual(seed, scenario)
    print(trace.digest.hex())

The same seed and the same scenario give the same trace, byte for byte, in every process with the same versions of
Python and Trio. What makes it so: `scheduler` puts Trio's choices under the seed, `run` gives virtual time, and
`environment` the clocks and random bytes; everything that travels is in the one event queue of
`bnw.transport.memory`; nothing uses a thread. `world` holds `node`s by name, `profiles` gives them descriptor plug-ins,
and `trace` is what two runs are compared by.
"""
