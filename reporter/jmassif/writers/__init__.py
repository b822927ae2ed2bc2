# SPDX-License-Identifier: GPL-2.0-or-later
"""One module an output format, or a folder where it has many sections: a writer turns a profile and a view into lines of
text, or into bytes, and does nothing else. view.py says what a user can ask to see; the table of all formats is
commands/formats.py. text/, page/ and compare/ use the modules beside them, in that order; none of those uses a folder.

Uses model/, whose/ and questions/.
"""
