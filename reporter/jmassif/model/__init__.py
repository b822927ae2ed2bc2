# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run is: the kinds of memory there are, the records that were kept of it, the profile that holds them, and the
processes of a job. Knows nothing of files, of names that people use, or of reports. Uses only modules beside this folder.
"""
