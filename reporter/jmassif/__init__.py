# SPDX-License-Identifier: GPL-2.0-or-later
"""The reporter: reads what the jmassif recorder wrote and shows where the memory went.

trace.py reads the file's records, profile.py keeps them as a model, tree.py and ledger.py answer questions about it,
and each module in writers/ turns the answers into one output format. Nothing here needs more than Python 3.6.
"""

__version__ = "0.1.0"
