# SPDX-License-Identifier: GPL-2.0-or-later
"""What the HTML page is told about a run: pruned to what a browser can hold, and exact to the byte all the same.

docs/architecture.md, section "The page", is the contract between this package and reporter/web/.
"""
