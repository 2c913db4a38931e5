"""The settings as they were last read, and the way to read them anew."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from bridge.settings.sources import Problem
from bridge.settings.table import TABLE, Configuration
from bridge.text import one_line

log = logging.getLogger(__name__)


class Setup:
    """What the user said, as far as we know it."""

    def __init__(self, configuration: Configuration, read: Callable[[], Configuration]) -> None:
        self.configuration = configuration
        """As it was last read."""
        self.problems: tuple[Problem, ...] = ()
        """What is wrong beside the settings themselves: with sets of tools that they name."""
        self._at_start = configuration
        self._read = read
        self.trial = asyncio.Lock()
        """Held from reading anew until it is decided what comes of it."""

    def read_anew(self) -> Configuration:
        """Read everything again, and say on stderr what is newly wrong with it."""
        before, self.configuration = self.configuration, self._read()
        if self.configuration.env_file != before.env_file:
            places = (
                one.env_file or "the environment alone" for one in (self.configuration, before)
            )
            moved = "the settings come from {} now, and came from {} before".format(*places)
            warnings = (*self.configuration.warnings, moved)
            self.configuration = replace(self.configuration, warnings=warnings)
        for warning in self.configuration.warnings:
            if warning not in before.warnings:
                log.warning("%s", one_line(warning))
        for problem in self.configuration.problems:
            if problem not in before.problems:
                log.error("%s", one_line(str(problem)))
        return self.configuration

    @property
    def waiting_for_restart(self) -> list[str]:
        """Return the variables whose new values hold only from the next start on."""
        return [
            row.name
            for row in TABLE
            if not row.participant
            and self.configuration.loaded[row.name] != self._at_start.loaded[row.name]
        ]
