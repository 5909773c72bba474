"""Looking at yesterday: a range of time is chosen, a moment pointed at, and its values read, with scripts and without."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from tests.support.waiting import wait_for

from .conftest import PATIENCE_MS, fits, tabs_fit

CHARTS = 5


@pytest.fixture
def history(console):
    return console.address(f"instances/{console.instances['orders']}/history")


def chart_card(page, name="Produced"):
    return page.locator(".plot-card").filter(has=page.get_by_role("heading", name=name, exact=True))


def chart_of(page, name="Produced"):
    return chart_card(page, name).locator(".plot")


def moment_of(row):
    """The beginning of the step that a row of a chart's table tells of, in seconds since 1970. Tables are in UTC."""
    stamp = row.get_by_role("rowheader").inner_text()
    return int(datetime.strptime(f"{stamp} +0000", "%Y-%m-%d %H:%M %z").timestamp())


def ink(page, name="Produced"):
    """What is drawn: how many places of the canvas have a colour, and the sum of all colours."""
    return (
        chart_of(page, name)
        .locator("canvas")
        .evaluate(
            """(canvas) => {
          const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
          let places = 0, sum = 0;
          for (let at = 3; at < data.length; at += 4) {
            if (data[at]) { places += 1; sum += data[at - 1] + data[at - 2] + data[at - 3]; }
          }
          return [places, sum];
        }"""
        )
    )


def test_pointing_at_a_moment_shows_its_values_in_all_charts(open_page, history):
    page = open_page("alice", timezone_id="UTC")
    page.goto(f"{history}?range=24h")
    readouts = page.locator(".readout")
    expect(readouts).to_have_count(CHARTS)
    chart_of(page).hover(position={"x": 300, "y": 100})
    cursors = page.locator(".plot-cursor:visible")
    expect(cursors).to_have_count(CHARTS)
    assert len({each.get_attribute("data-at") for each in cursors.all()}) == 1
    assert len({text.partition(" UTC: ")[0] for text in readouts.all_inner_texts()}) == 1
    expect(readouts.first).to_contain_text("limit 20 MiB/s")
    page.get_by_role("heading", name="orders").hover()
    expect(readouts.first).to_be_empty()
    expect(cursors).to_have_count(0)


def test_values_of_a_moment_are_written_as_in_the_table(open_page, history):
    page = open_page("alice", timezone_id="UTC")
    page.goto(f"{history}?range=24h")
    for name in ("Produced", "Throttled, share of the time", "Storage", "Connections"):
        card = chart_card(page, name)
        card.locator("summary").click()
        row = card.get_by_role("row").nth(5)
        heads = [text.lower() for text in card.get_by_role("columnheader").all_inner_texts()[1:]]
        values = row.get_by_role("cell").all_inner_texts()
        said = ", ".join(f"{head} {value}" for head, value in zip(heads, values, strict=True) if head != "events")
        chart_of(page, name).focus()
        page.keyboard.press("End")
        for _ in range(4):
            page.keyboard.press("ArrowLeft")
        expect(card.locator(".plot-cursor")).to_have_attribute("data-at", str(moment_of(row)))
        expect(card.locator(".readout")).to_contain_text(f": {said}")


def test_a_chart_is_moved_through_by_keyboard_and_tells_it_once(open_page, history):
    page = open_page("alice", timezone_id="Asia/Shanghai")
    page.goto(f"{history}?range=24h")
    # The newest steps of which anything is known, as the table has them: an event may stand alone after a gap.
    page.get_by_text("Produced as a table").click()
    newest, before = (moment_of(chart_card(page).get_by_role("row").nth(number)) for number in (1, 2))
    plot, said, cursor = chart_of(page), page.locator("#plots-said"), page.locator(".plot-cursor").first
    plot.focus()
    expect(said).to_contain_text("average")
    expect(said).to_contain_text("GMT+8")

    def at():
        return int(cursor.get_attribute("data-at"))

    end = at()
    assert end == newest
    page.keyboard.press("ArrowLeft")
    assert at() == before
    assert said.inner_text() == page.locator(".readout").first.inner_text()
    page.keyboard.press("Home")
    assert end - at() > 80_000
    page.keyboard.press("End")
    assert at() == end
    page.keyboard.press("Escape")
    expect(said).to_be_empty()
    expect(cursor).to_be_hidden()
    assert page.evaluate("document.activeElement === document.body")


def test_a_chart_is_drawn_and_follows_the_theme_at_once(open_page, history):
    page = open_page("alice", timezone_id="UTC", color_scheme="light")
    page.goto(f"{history}?range=24h")
    wait_for(lambda: ink(page)[0] > 5_000, PATIENCE_MS / 1000, "the chart to be drawn")
    places, light = ink(page)
    page.emulate_media(color_scheme="dark")
    wait_for(lambda: ink(page)[1] != light, PATIENCE_MS / 1000, "other colours")
    same, _ = ink(page)
    assert abs(same - places) < places / 10, "other colours in the same places"
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    wait_for(lambda: ink(page)[1] == light, PATIENCE_MS / 1000, "the colours of before")


def test_a_time_is_chosen_in_the_zone_of_the_browser_and_stands_in_the_address(open_page, history):
    page = open_page("alice", timezone_id="Asia/Shanghai")
    page.goto(f"{history}?range=24h")
    start = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=3)
    expect(page.get_by_label("From, Asia/Shanghai")).to_be_visible()
    for label, moment in (("From", start), ("To", start + timedelta(hours=1))):
        page.get_by_label(f"{label}, Asia/Shanghai").fill(f"{moment + timedelta(hours=8):%Y-%m-%dT%H:%M}")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page).to_have_url(re.compile(f"since={start:%Y-%m-%dT%H}%3A{start:%M}Z"))
    expect(page.get_by_label("From, Asia/Shanghai")).to_have_value(f"{start + timedelta(hours=8):%Y-%m-%dT%H:%M}")
    chart_of(page).focus()
    page.keyboard.press("Home")
    moment = int(page.locator(".plot-cursor").first.get_attribute("data-at"))
    assert start.timestamp() <= moment < start.timestamp() + 600
    page.get_by_label("To, Asia/Shanghai").fill(f"{start:%Y-%m-%dT%H:%M}")  # eight hours before
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_text("This must be later than the beginning.")).to_be_visible()


@pytest.mark.parametrize("width", [1280, 1024, 390])
def test_all_tabs_and_the_table_of_requests_are_in_sight(open_page, history, width):
    page = open_page("alice", timezone_id="UTC", viewport={"width": width, "height": 800})
    page.goto(history)
    expect(page.locator(".tabs").get_by_role("link", name="Settings")).to_be_in_viewport(ratio=1)
    assert tabs_fit(page)
    assert fits(page)


def test_on_a_phone_the_tab_of_the_page_is_in_sight(open_page, history):
    page = open_page("alice", timezone_id="UTC", viewport={"width": 360, "height": 800})
    page.goto(history)
    expect(page.locator('.tabs a[aria-current="page"]').first).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollY") == 0


def test_from_the_overview_to_another_range_and_into_a_table_by_keyboard(open_page, console, history):
    page = open_page("alice", timezone_id="UTC")
    page.goto(console.address(f"instances/{console.instances['orders']}"))
    page.get_by_role("link", name="History").click()
    expect(page.get_by_role("heading", name="The last hour")).to_be_visible()
    page.get_by_role("link", name="400 days").press("Enter")
    expect(page.get_by_role("heading", name="The last 400 days")).to_be_visible()
    summary = page.get_by_text("Storage as a table")
    summary.focus()
    summary.press("Enter")
    table = page.get_by_role("region", name="Storage, values")
    expect(table).to_be_visible()
    assert table.get_by_role("row").count() > 100
    expect(table.get_by_role("row").filter(has_text="100 GiB").first).to_be_visible()


def test_without_scripts_ranges_are_links_and_tables_stand_open(open_page, history):
    page = open_page("alice", timezone_id="UTC", java_script_enabled=False)
    page.goto(history)
    page.get_by_role("link", name="7 days").click()
    expect(page.get_by_role("heading", name="The last 7 days")).to_be_visible()
    expect(page.get_by_role("region", name="Storage, values")).to_be_visible()
    expect(page.locator(".plot:visible")).to_have_count(0)


def test_what_happened_is_marked_told_to_the_pointer_and_in_the_table(open_page, history):
    page = open_page("alice", timezone_id="UTC")
    page.goto(f"{history}?range=24h&whole=produce")
    card = page.locator(".plot-card").first
    expect(card.locator(".legend").get_by_text("Alarm fired")).to_be_visible()
    row = card.get_by_role("row").filter(has_text="Alarm fired: A third of the storage").first
    expect(row).to_be_visible()
    moment = moment_of(row)
    chart_of(page).focus()
    page.keyboard.press("End")
    for _ in range(800):
        if card.locator(".plot-cursor").get_attribute("data-at") == str(moment):
            break
        page.keyboard.press("ArrowLeft")
    expect(card.locator(".readout")).to_contain_text("Alarm fired: A third of the storage")
    expect(page.locator("#plots-said")).to_contain_text("Alarm fired: A third of the storage")
