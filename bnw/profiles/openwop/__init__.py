"""OpenWOP capabilities documents, the JSON that an OpenWOP host serves at `/.well-known/openwop`.

Version 1 is checked whole: its schema (`constraints.json`, the constraints without the prose, made by
`scripts/strip-openwop-schema`) and the rules that only its prose states (`rules`). Version 2 is recognised and its root
is checked (`version2`). `fetch` gets a document from a live host. The format describes a host and not one call, so it
has no links, no limits on payloads and no starter document.
"""
