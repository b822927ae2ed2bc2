# SPDX-License-Identifier: GPL-2.0-or-later
"""The limits of tests that run below Valgrind: what the pytest plugin does when it is asked to."""

# In the environment of the process below Valgrind: where it writes what comes of the tests.
CHANNEL = "JMASSIF_PYTEST_CHANNEL"
