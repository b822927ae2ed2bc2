# SPDX-License-Identifier: GPL-2.0-or-later
"""The page on a server of its own: what it asks for beyond what it has in it, and what is new. Only commands use it."""
