# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs by the thousand, in a database: what of a run is kept there, how it gets there, and what differs between groups of
them. Statistics know nothing of databases, and databases nothing of what is asked of them.
"""
