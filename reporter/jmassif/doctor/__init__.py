# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that a machine can record, before a run of ten minutes shows that it cannot."""
