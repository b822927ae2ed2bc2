# SPDX-License-Identifier: GPL-2.0-or-later
"""The option --editor: what opens a line of source from a page."""

import argparse

from jmassif.writers.editor import EDITORS, Editor, EditorError, parse_editor


def _editor(text: str) -> Editor:
    try:
        return parse_editor(text)
    except EditorError as error:
        raise argparse.ArgumentTypeError(str(error))


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--editor",
        type=_editor,
        metavar="NAME|URL",
        help=f"lines on the page are links that open them in an editor: {', '.join(EDITORS)}, or an address with {{file}} and"
        " {line} in it",
    )
