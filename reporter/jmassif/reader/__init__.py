# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a trace into a model. Nothing else knows the letters of its records."""
