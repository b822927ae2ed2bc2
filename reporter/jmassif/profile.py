# SPDX-License-Identifier: GPL-2.0-or-later
"""Names that docs/python-api.md promises in this place. In the package they live elsewhere."""

from jmassif.api import Profile
from jmassif.model.records import side_of

__all__ = ["Profile", "side_of"]
