# SPDX-License-Identifier: GPL-2.0-or-later
"""What stands in the way of recording on a machine, before anybody waits ten minutes for it.

Each module asks one thing of the machine and returns findings; a finding says that all is well, what is lost, or how to mend it.
"""
