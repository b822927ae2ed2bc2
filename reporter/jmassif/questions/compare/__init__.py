# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs laid side by side, under names that mean the same in each. Uses questions/."""
