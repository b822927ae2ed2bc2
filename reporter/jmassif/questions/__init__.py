# SPDX-License-Identifier: GPL-2.0-or-later
"""What can be asked of a run: each module is a few pure functions from a profile, or a moment of it, to plain records.
Nothing here knows how an answer is shown. job/ asks several processes at once, compare/ several runs.

Uses model/ and whose/.
"""
