# SPDX-License-Identifier: GPL-2.0-or-later
"""Analyses of a run: pure functions from a run, or a moment of it, to numbers."""
