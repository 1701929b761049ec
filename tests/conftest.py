"""Settings of all tests."""

import signal

from hypothesis import settings

settings.register_profile("panda", deadline=None)  # a busy machine is no failure
settings.load_profile("panda")

signal.signal(signal.SIGINT, signal.default_int_handler)
"""A shell that starts the tests in the background ignores Ctrl-C, and what the tests start inherits that."""
