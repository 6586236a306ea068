"""A run as one HTML page that needs nothing else: no scripts, no fonts, no pictures from elsewhere.

`page` puts it together from `setting` (what was simulated), `charts` with `scales` and `happenings`, `network`, and
`story` (of the worst node); `sweep` is the page of many runs. `words` gives numbers their units, `markup` escapes every
text, and `style` has all there is of looks.
"""

from bnw.sim.report.page import report_page
from bnw.sim.report.sweep import sweep_page

__all__ = ["report_page", "sweep_page"]
