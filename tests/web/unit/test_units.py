# SPDX-License-Identifier: GPL-2.0-or-later
"""The page's words for numbers are the text report's."""

import random
from typing import Any, List

from jmassif.units import growth, moment, percent, size

from tests.web.browser import in_node

SCRIPT = """
import { growth, moment, percent, size } from './src/base/units.js';
import { readFileSync } from 'node:fs';
const { sizes, shares, times } = JSON.parse(readFileSync(0, 'utf8'));
console.log(JSON.stringify([
    sizes.map((n) => [size(n), growth(n)]),
    shares.map(([part, all]) => percent(part, all)),
    times.map((n) => ['ms', 'i', 'B'].map((unit) => moment(n, unit))),
]));
"""


def test_numbers_read_as_in_the_text_report() -> None:
    rng = random.Random(1)
    sizes = [0, 1, -1, 1023, 1024, 1047552, 141824, 12.25 * 1024, 1.125 * 1024, 1.375 * (1 << 20), 2.5 * (1 << 40)]
    sizes += [rng.choice((1, -1)) * int(10 ** rng.uniform(0, 15)) for _ in range(3000)]
    sizes += [rng.randrange(1 << 14) << rng.randrange(32) for _ in range(3000)]
    shares = [(rng.randrange(2001), 2000) for _ in range(500)] + [(1, 3), (1, 16), (5, 0)]
    times = [rng.randrange(10 ** rng.randrange(1, 9)) for _ in range(1000)] + [1125, 1375, 59999, 999, 1000]
    asked = {"sizes": list(map(int, sizes)), "shares": shares, "times": times}
    found: List[List[Any]] = in_node(SCRIPT, asked)
    assert found[0] == [[size(n), growth(n)] for n in map(int, sizes)]
    assert found[1] == [percent(part, whole) for part, whole in shares]
    assert found[2] == [[moment(n, unit) for unit in ("ms", "i", "B")] for n in times]
