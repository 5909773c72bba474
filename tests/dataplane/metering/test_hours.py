"""Hours as text, against the standard library's calendar."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from dataplane.metering.hours import HOUR_MS, hour_of, hour_text

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(st.integers(0, 253_402_300_799_999))  # up to the end of the year 9999
def test_an_hour_reads_as_the_calendar_says(ms):
    moment = EPOCH + timedelta(milliseconds=ms)
    assert ms == (moment - EPOCH) // timedelta(milliseconds=1)
    assert hour_text(hour_of(ms)) == moment.strftime(f"{moment.year:04d}-%m-%dT%H:00:00Z")


def test_the_last_millisecond_belongs_to_the_hour_that_ends():
    ms = (datetime(2028, 2, 29, 23, tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)
    assert hour_text(hour_of(ms + HOUR_MS - 1)) == "2028-02-29T23:00:00Z"
    assert hour_text(hour_of(ms + HOUR_MS)) == "2028-03-01T00:00:00Z"
