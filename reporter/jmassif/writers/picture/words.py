# SPDX-License-Identifier: GPL-2.0-or-later
"""What stands on top of a picture: the command, and the answer in a few sentences, so that a picture without its report is one."""

from typing import List, Tuple

from jmassif.model.profile import Profile
from jmassif.questions.happened import NOTE
from jmassif.questions.headline import HAPPENED, LEAK, PLACE, POOL, Headline, words
from jmassif.units import printable
from jmassif.writers.picture import svg

_MOST_COMMAND = 300


def command(profile: Profile) -> str:
    return printable(profile.manifest.get("command", "")[:_MOST_COMMAND]) or "a recorded run"


def sentences(made: Headline) -> List[Tuple[str, str]]:
    """(text, colour): what happened, if it did not go well; how much was held, and where to look."""
    told = [(each.text, svg.TEXT if each.severity == NOTE else svg.ALARM) for each in made.about(HAPPENED)]
    told.append((words(made, POOL, PLACE), svg.TEXT))
    return told + [(each.text, svg.ALARM) for each in made.about(LEAK)]
