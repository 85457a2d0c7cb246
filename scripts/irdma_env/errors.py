# SPDX-License-Identifier: GPL-2.0
"""The one exception that is meant for the person at the terminal."""


class EnvError(Exception):
    """Something the user has to know; its text is the whole message."""
