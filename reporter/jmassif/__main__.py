# SPDX-License-Identifier: GPL-2.0-or-later
"""`python3 -m jmassif`: the subcommands of the command jmassif."""

from jmassif.cli.main import run

run()
