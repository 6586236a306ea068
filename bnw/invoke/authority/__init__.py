"""Who may do what, on whose word: chains of delegations, judged link by link (design section 11).

    question ──► explain ──► verdict          pure: who wants what, on which chain, at what time, after how many calls
                   ▲
                 bounds                       what a link grants, and what is left of a chain's rights below it

`question` says whose word counts: the root of authority. `explain` judges one chain, and `verdict` says the result to
programs and people. `chains` puts delegations in order and finds those that lead to a root. `build` makes delegations
that a reader will not refuse. `usage` counts calls. The rest has a store behind it: `lookup` searches the catalog,
`ledger` keeps the counters, and `book` is what a provider asks before it runs a call.

Four rules hold everywhere:

- A link only narrows. Null in a caveat narrows nothing, so what stands above goes on holding; a stated value that is
  wider than what stands above breaks the chain, although the tighter value would hold anyway.
- Every check of a link needs only that link and those above it. So a child never permits what its parent forbids.
- A revocation counts from the moment it is known, whatever times it states. More revocations never permit more.
- Counts are kept per link, at each provider for itself. All that hangs below a link shares its count.
"""
