# SPDX-License-Identifier: GPL-2.0-or-later
"""Attributes memory: internal frames, packages, the line to blame, names that are safe to show."""
