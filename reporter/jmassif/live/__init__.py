# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs that are still going on: present memory and events, from sums that are kept up to date record by record."""
