# SPDX-License-Identifier: GPL-2.0-or-later
"""The report for a terminal, a module a group of sections. report.py puts them in order."""
