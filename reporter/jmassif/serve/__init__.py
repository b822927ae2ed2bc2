# SPDX-License-Identifier: GPL-2.0-or-later
"""The page on a server: queries beyond the data in the page, and live updates. Only commands use it."""
