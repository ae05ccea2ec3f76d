"""Bars for a page: an SVG that is readable on light and on dark paper, without a script or a font of its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

COLUMNS: Final = 2
WIDTH, HEIGHT = 360, 230
TOP, BARS, BAR, GAP = 72, 120, 34, 4
STYLE: Final = """
text { font: 13px system-ui, sans-serif; fill: #221a28 }
.quiet { fill: #5d5163 } .title { font-weight: 600 } .line { stroke: #8d8091 }
.s0 { fill: #b56a00 } .s1 { fill: #6e3488 }
@media (prefers-color-scheme: dark) {
  text { fill: #f4eff5 } .quiet { fill: #bdb1c2 } .line { stroke: #85788b }
  .s0 { fill: #ffc04a } .s1 { fill: #c99fe0 }
}
"""
"""The colours of the web's tokens, for light and for dark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Some sizes, and a value of each series for each of them."""

    title: str
    sizes: Sequence[int]
    series: Mapping[str, Sequence[float]]


def draw(title: str, panels: Sequence[Panel]) -> str:
    """Panels side by side, all by one measure, so that a tall bar is tall in each of them."""
    rows = -(-len(panels) // COLUMNS)
    most = max(value for panel in panels for values in panel.series.values() for value in values)
    width, height = COLUMNS * WIDTH, TOP + rows * HEIGHT
    box = f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box}><style>{STYLE}</style>',
        f'<text class="title" x="16" y="28">{escape(title)}</text>',
        *_legend(list(panels[0].series)),
    ]
    for number, panel in enumerate(panels):
        row, column = divmod(number, COLUMNS)
        parts.append(f'<g transform="translate({column * WIDTH + 16} {TOP + row * HEIGHT})">')
        parts += _bars(panel, most)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def _legend(names: Sequence[str]) -> Iterator[str]:
    for number, name in enumerate(names):
        x = 16 + 130 * number
        yield f'<rect class="s{number}" x="{x}" y="42" width="12" height="12" rx="2"/>'
        yield f'<text class="quiet" x="{x + 18}" y="53">{escape(name)}</text>'


def _bars(panel: Panel, most: float) -> Iterator[str]:
    yield f'<text class="title" x="0" y="20">{escape(panel.title)}</text>'
    base = 48 + BARS
    step = (WIDTH - 32) / len(panel.sizes)
    for place, size in enumerate(panel.sizes):
        left = place * step + (step - len(panel.series) * (BAR + GAP)) / 2
        for number, values in enumerate(panel.series.values()):
            x, height = left + number * (BAR + GAP), BARS * values[place] / most
            top, middle = base - height, x + BAR / 2
            yield f'<rect class="s{number}" x="{x:.0f}" y="{top:.1f}" width="{BAR}" height="{height:.1f}" rx="2"/>'
            said = f"{values[place]:,.0f}"
            yield f'<text class="quiet" x="{middle:.0f}" y="{top - 5:.1f}" text-anchor="middle">{said}</text>'
        yield (f'<text x="{(place + 0.5) * step:.0f}" y="{base + 20}" text-anchor="middle">{size:,}</text>')
    yield f'<path class="line" d="M0 {base + 0.5}H{WIDTH - 32}"/>'
