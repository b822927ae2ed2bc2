# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs by the thousand in a database, and differences between groups of them."""
