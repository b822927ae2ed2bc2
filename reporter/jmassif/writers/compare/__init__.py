# SPDX-License-Identifier: GPL-2.0-or-later
"""A difference of runs, as tables, as data and as a page."""
