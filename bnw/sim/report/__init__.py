"""A run as one HTML page that needs nothing else: no scripts, no fonts, no pictures from elsewhere.

`page` puts it together, `charts` and `network` draw, `story` tells of the worst node, `markup` escapes every text.
"""

from bnw.sim.report.page import report_page

__all__ = ["report_page"]
