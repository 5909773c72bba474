"""A chart as SVG that stands in a page: lines over time against axes with units. pygal draws; it has no other user.

Pages allow neither inline styles nor scripts, and fetch nothing from elsewhere, so of what pygal makes its style sheet, its
script and its comments are taken out, and its classes are ours: static/console/console.css has the colours, of light and dark.
Added is a strip for each step, with the values of all lines as its title: what a pointer rests on. static/console/history.js
shows the same at once and in all charts of a page; without it browsers show the title by themselves. What happened in a step is a
mark behind its strip, and stands in the title as well.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pygal
from pygal.style import Style

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# pygal puts a finder of its plug-ins among Python's own, in a form that Python warns of at each import; we have none of them.
sys.meta_path[:] = [each for each in sys.meta_path if type(each).__module__ != pygal.__name__]

WIDTH, HEIGHT = 600, 230
LABEL_SIZE = 20
"""As large as labels become on a phone, where the picture is half as wide: there has to be room for them."""
STYLE = Style(label_font_size=LABEL_SIZE, major_label_font_size=LABEL_SIZE)
SVG = "{http://www.w3.org/2000/svg}"
NOT_OURS = ("defs", "title", "desc", "style", "script")


@dataclass(frozen=True, slots=True)
class Line:
    """One line: how it is drawn, what it is called, and a value for each step. None: a gap.

    `words`: what is said of a step, by its number, instead of its value: that there is none may mean something.
    """

    kind: str  # a class of console.css: flow, most, limit, allocation, other
    title: str
    values: Sequence[float | None]
    words: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mark:
    """What happened in a step: how it is drawn, and what is said of it, each once."""

    kind: str  # a class of console.css: resized, throttling, failover, fired; of several, the most serious
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """What is drawn. `moments` are seconds since 1970, one for each value of each line."""

    name: str  # within the page
    title: str
    lines: Sequence[Line]
    moments: Sequence[int]
    step_s: int
    ticks: Sequence[int]  # of the axis of time
    levels: Sequence[float]  # of the axis of values, from 0 to the top
    value_text: Callable[[float | None], str]
    tick_text: Callable[[int], str]
    moment_text: Callable[[int], str]
    summary: str  # what a screen reader says of it
    marks: Mapping[int, Mark] = field(default_factory=dict)  # by the moment of their step

    def texts(self, step: int) -> list[str]:
        """Of one step, the value of each line."""
        return [line.words.get(step) or self.value_text(line.values[step]) for line in self.lines]

    def is_told(self, step: int) -> bool:
        """Whether anything is known of a step, or happened in it."""
        return self.moments[step] in self.marks or any(line.values[step] is not None for line in self.lines)


def svg(chart: Chart) -> str:
    """The drawing."""
    graph = pygal.XY(
        width=WIDTH,
        height=HEIGHT,
        style=STYLE,
        js=[],
        css=[],
        margin=4,
        margin_top=12,
        margin_bottom=14,
        show_legend=False,
        show_dots=False,
        include_x_axis=False,
        allow_interruptions=True,
        no_data_text="",
        range=(chart.levels[0], chart.levels[-1]),
        xrange=(chart.moments[0], chart.moments[-1]),
        x_labels=list(chart.ticks),
        y_labels=list(chart.levels),
        x_value_formatter=lambda at: chart.tick_text(round(at)),
        value_formatter=chart.value_text,
        truncate_label=-1,
    )
    for line in chart.lines:
        graph.add(line.title, _points(chart, line))

    def ours(root: ET.Element) -> ET.Element:
        _cleaned(root, chart)
        plot = next(each for each in root.iter() if each.get("class") == "plot")
        plot.append(_marks(graph.view, chart))  # it has a view only while it draws
        plot.append(_strips(graph.view, chart))
        return root

    graph.add_xml_filter(ours)
    return ET.tostring(graph.render_tree(), encoding="unicode")


def _points(chart: Chart, line: Line) -> list[tuple[float, float | None]]:
    """A value between two gaps becomes a short stroke: a line of one point is none."""
    points: list[tuple[float, float | None]] = []
    around = [None, *line.values, None]
    for step, (at, value) in enumerate(zip(chart.moments, line.values, strict=True)):
        is_lone = value is not None and around[step] is None and around[step + 2] is None
        points += [(at, value), (at + chart.step_s / 2, value)] if is_lone else [(at, value)]
    return points


def _cleaned(root: ET.Element, chart: Chart) -> None:
    for parent in list(root.iter()):
        for child in list(parent):
            is_element = isinstance(child.tag, str)  # the others are comments
            if not is_element or child.tag.removeprefix(SVG) in NOT_OURS or "overlay" in child.get("class", ""):
                parent.remove(child)
    for group in root.iter():
        group.attrib.pop("style", None)
        words = group.get("class", "").split()
        if "series" in words:
            number = next(int(word.removeprefix("serie-")) for word in words if word.startswith("serie-"))
            group.set("class", f"series {chart.lines[number].kind}")
    del root.attrib["id"]
    root.set("class", "plot-svg")
    root.set("role", "img")
    root.set("aria-label", chart.summary)


def _marks(view: pygal.view.View, chart: Chart) -> ET.Element:
    """A line for each, in the middle of its step, with a head: colours are not all that tells them apart."""
    marks = ET.Element("g", {"class": "event-marks"})
    top, bottom = view.y(chart.levels[-1]), view.y(chart.levels[0])
    for at in chart.moments:
        if at in chart.marks:
            middle = view.x(at)
            mark = ET.SubElement(marks, "g", {"class": f"event-mark {chart.marks[at].kind}"})
            ET.SubElement(mark, "path", {"d": f"M{middle:.1f} {top:.1f}V{bottom:.1f}"})
            ET.SubElement(mark, "circle", {"cx": f"{middle:.1f}", "cy": f"{top:.1f}", "r": "4"})
    return marks


def _strips(view: pygal.view.View, chart: Chart) -> ET.Element:
    """One for each step of which there is anything to tell, as wide as the step."""
    strips = ET.Element("g", {"class": "strips"})
    top, bottom = view.y(chart.levels[-1]), view.y(chart.levels[0])
    half = (view.x(chart.moments[0] + chart.step_s) - view.x(chart.moments[0])) / 2
    for step, at in enumerate(chart.moments):
        if not chart.is_told(step):
            continue
        middle = view.x(at)
        strip = ET.SubElement(strips, "g", {"class": "strip", "data-at": str(at)})
        said = ", ".join(f"{line.title} {text}" for line, text in zip(chart.lines, chart.texts(step), strict=True))
        happened = chart.marks[at].texts if at in chart.marks else ()
        ET.SubElement(strip, "title").text = " · ".join([f"{chart.moment_text(at)}: {said}", *happened])
        ET.SubElement(
            strip,
            "rect",
            {
                "x": f"{middle - half:.1f}",
                "y": f"{top:.1f}",
                "width": f"{2 * half:.1f}",
                "height": f"{bottom - top:.1f}",
            },
        )
        ET.SubElement(strip, "path", {"d": f"M{middle:.1f} {top:.1f}V{bottom:.1f}"})
    return strips
