# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a trace into a model. The grammar knows how a record is spelt and nothing of what it means; the builder knows what
it means; inputs.py opens what is compressed. Nobody else knows the records' letters. Uses model/.
"""
