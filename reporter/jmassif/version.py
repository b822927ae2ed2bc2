# SPDX-License-Identifier: GPL-2.0-or-later
"""The version, as reports and traces name it."""

__version__ = "0.1.0"
