"""For all tests: a machine that is busy with something else fails none of them by being slow for a moment."""

from hypothesis import settings

settings.register_profile("sluice", deadline=None)  # each test as a whole is bounded in time by pytest-timeout
settings.load_profile("sluice")
