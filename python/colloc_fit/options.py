# SPDX-License-Identifier: Apache-2.0
"""The command lines of programs that measure, show and fit."""
import sys


def positive(kind):
    """The type of an option of argparse: a number above 0. kind: int or float"""

    def read(text):
        value = kind(text)
        if not value > 0:
            raise ValueError(text)
        return value

    read.__name__ = f"number above 0 ({kind.__name__})"
    return read


def read_options(arguments, usual, known_flags, usage):
    """Returns the options by name, and the set of flags that are given.

    usual: option -> its value where it is not given
    usage: printed for any other argument; the program ends then
    """
    options, flags = dict(usual), set()
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if name in options and equals:
            options[name] = value
        elif argument in known_flags:
            flags.add(argument)
        else:
            sys.exit(usage)
    return options, flags
