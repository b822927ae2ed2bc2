# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs that go on: what they hold at this moment, and what has happened. Every question here is answered from sums that are
kept up to date record by record, so that to ask costs nothing. Uses all above; only commands use it.
"""
