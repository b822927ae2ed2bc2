# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands jm_print, jm_diff, jm_check, jm_top and jm_serve: their options, the table of formats, where output goes, and how a terminal
is treated. Uses everything but api.py.
"""
