# SPDX-License-Identifier: GPL-2.0-or-later
"""The version, which reports name as their maker's."""

__version__ = "0.1.0"
