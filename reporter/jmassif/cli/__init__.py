# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands: options, files, exit statuses."""
