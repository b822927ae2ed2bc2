# SPDX-License-Identifier: GPL-2.0-or-later
"""Who is to blame for memory, and what it is called: which frames are internal, which line or library an account is
charged to, and names that are safe to show. Uses model/.
"""
