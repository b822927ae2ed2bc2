# SPDX-License-Identifier: GPL-2.0-or-later
"""Pictures of a run for READMEs, slides and image viewers: the timeline and the flame graph, as SVG and PNG."""
