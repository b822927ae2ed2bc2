# SPDX-License-Identifier: GPL-2.0-or-later
"""`python3 -m jmassif`: the subcommands of the command jmassif, or a script to record with this interpreter."""

import os
import sys

from jmassif.cli.common import warn
from jmassif.cli.main import COMMANDS, run
from jmassif.launcher import LaunchError, launcher, split_options

options, script = split_options(sys.argv[1:])
if script and script[0] not in COMMANDS and (script[0] in ("-m", "-c") or os.path.exists(script[0])):
    try:
        words = launcher(options) + options + [sys.executable] + script
    except LaunchError as error:
        warn(f"recording {error}")
        sys.exit(2)
    os.execv(words[0], words)
run()
