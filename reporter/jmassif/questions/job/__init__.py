# SPDX-License-Identifier: GPL-2.0-or-later
"""What the processes of a job held together: bounds over time, and what a fork shares. Uses questions/."""
