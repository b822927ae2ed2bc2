# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that a machine can record, before a run of ten minutes shows that it cannot.

Each module asks one thing of the machine and returns findings; a finding says that all is well, what is lost, or how to mend it.
"""
