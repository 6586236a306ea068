"""How the pages look: one style sheet, for wide and narrow screens, light and dark, and paper.

Colours are those of Okabe and Ito (https://jfly.uni-koeln.de/color/), which people with any colour vision can tell
apart. No meaning is in a colour alone: what held or failed has a sign and a word, adversaries have a shape.
"""

from __future__ import annotations

from typing import Final

ROLE_COLOURS: Final = 6
"""Classes `role-0` to `role-5`."""

STYLE: Final = """
:root { color-scheme: light dark; --fg: #1c2430; --bg: #fff; --soft: #5b6777; --line: #d9dee6; --panel: #f5f7fa;
  --blue: #0072b2; --good: #00694f; --bad: #b34700; --band: #e69f00; --r0: #0072b2; --r1: #e69f00; --r2: #009e73;
  --r3: #cc79a7; --r4: #56b4e9; --r5: #7a7a7a; --evil: #d55e00; }
@media (prefers-color-scheme: dark) { :root { --fg: #e6eaf0; --bg: #14181f; --soft: #a3afbf; --line: #333c49;
  --panel: #1c222c; --blue: #56b4e9; --good: #3ecf9f; --bad: #ff9a4d; --band: #e69f00; --r0: #56b4e9; --r4: #8fa8ff;
  --r5: #b5b5b5; --evil: #ff8a3d; } }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; color: var(--fg);
  background: var(--bg); margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 54rem; overflow-wrap: break-word; }
header p.kind { margin: 0; color: var(--soft); font-size: .875rem; letter-spacing: .02em; }
h1 { margin: .1rem 0 .6rem; font-size: 2rem; line-height: 1.2; text-wrap: balance; }
h2 { margin: 3rem 0 .75rem; font-size: 1.3rem; line-height: 1.3; }
h3 { margin: 1.5rem 0 .25rem; font-size: 1rem; }
p { margin: .5rem 0; max-width: 46rem; } .soft, small { color: var(--soft); } small { font-size: .875rem; }
code { font: .875em/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.verdict { display: inline-block; padding: .35rem .9rem; border-radius: 2rem; font-weight: 650; margin: .5rem 0;
  border: 1.5px solid currentColor; }
.good { color: var(--good); } .bad { color: var(--bad); } .good, .bad { font-weight: 650; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(10.5rem, 1fr)); gap: .75rem; margin: 1.5rem 0; }
.tiles div { background: var(--panel); border-radius: .6rem; padding: .7rem .9rem; }
.tiles strong { display: block; font-size: 1.45rem; font-weight: 650; line-height: 1.3; white-space: nowrap; }
.tiles span { color: var(--soft); font-size: .875rem; line-height: 1.35; display: block; }
.note { background: var(--panel); border-left: 4px solid var(--band); border-radius: .3rem; padding: .6rem 1rem;
  margin: 1rem 0; } .note ul { margin: .3rem 0; padding-left: 1.2rem; }
dl { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: .35rem 1.25rem; margin: .75rem 0; }
dt { color: var(--soft); } dd { margin: 0; min-width: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .75rem 0; width: 100%; font-size: .9375rem; }
th { color: var(--soft); font-weight: 500; font-size: .875rem; border-bottom: 1.5px solid var(--line); }
td { border-bottom: 1px solid var(--line); }
th, td { text-align: left; padding: .45rem 1rem .45rem 0; vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td .good, td .bad, td code, .whole { white-space: nowrap; }
th.number { white-space: normal; } td small { display: block; line-height: 1.4; }
figure { margin: 1.25rem 0; } figcaption { font-weight: 600; margin-bottom: .25rem; }
figure svg { display: block; width: 100%; min-width: 34rem; height: auto; }
svg text { fill: var(--fg); font-size: 12px; } svg .tick { fill: var(--soft); } svg .middle { text-anchor: middle; }
svg .end { text-anchor: end; } .axis { stroke: var(--soft); } .grid { stroke: var(--line); }
.curve { fill: none; stroke: var(--blue); stroke-width: 2; stroke-linejoin: round; }
.under { fill: var(--blue); opacity: .13; }
.dot { fill: var(--blue); } .dot.ring { fill: var(--bg); stroke: var(--blue);
  stroke-width: 2; } .dot.open { fill: none; stroke: var(--bad); stroke-width: 2; } .halo { paint-order: stroke;
  stroke: var(--bg); stroke-width: 4px; stroke-linejoin: round; }
.range { stroke: var(--blue); stroke-width: 7; stroke-linecap: round; opacity: .3; }
.bar { fill: var(--band); opacity: .75; } .shade { fill: var(--band); opacity: .1; } .hair { stroke: var(--band);
  stroke-dasharray: 3 3; }
figure svg.net { min-width: 0; max-width: 38rem; margin: 0 auto; } .edge { stroke: var(--soft); stroke-width: .8;
  opacity: .45; } .edge.cut { stroke: var(--band); stroke-width: 1.4; opacity: .9; stroke-dasharray: 5 3; }
.role-0 { --c: var(--r0); } .role-1 { --c: var(--r1); } .role-2 { --c: var(--r2); } .role-3 { --c: var(--r3); }
.role-4 { --c: var(--r4); } .role-5 { --c: var(--r5); } .evil { --c: var(--evil); }
svg .node { fill: var(--c); stroke: var(--bg); stroke-width: 1.5; }
.around { fill: none; stroke: var(--fg); stroke-width: 2; }
.keys { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: .5rem 0; font-size: .9375rem; }
.keys span { display: inline-flex; align-items: center; gap: .4rem; }
.keys svg { width: 1.6em; height: 1em; flex: none; } .keys svg.spot { width: 1em; }
ol.story { padding-left: 1.25rem; } ol.story li { margin: .3rem 0; } details { margin: 1rem 0; }
summary { cursor: pointer; color: var(--blue); } :focus-visible { outline: 2px solid var(--blue); outline-offset: 2px; }
@media (max-width: 40rem) { body { padding: 1.5rem 1rem 3rem; } h1 { font-size: 1.6rem; } h2 { margin-top: 2.25rem; }
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .6rem; } th, td { padding-right: .7rem; }
  .tiles { grid-template-columns: repeat(2, 1fr); } thead { display: none; }
  table { border-top: 1px solid var(--line); }
  tbody tr { display: block; padding: .6rem 0; border-bottom: 1px solid var(--line); }
  tbody td, tbody td.number { display: block; padding: 0; border: 0; text-align: left; white-space: normal; }
  td:not([data-name=""])::before { content: attr(data-name) ": "; color: var(--soft); font-size: .875rem; }
  td .whole { display: inline; } td .whole + .whole::before { content: ", "; } td code { white-space: normal; } }
@media print { body { max-width: none; } section { break-inside: avoid; } }
"""
