# SPDX-License-Identifier: GPL-2.0-or-later
"""Text for people: the report and its sections. The only folder with sentences."""
