# SPDX-License-Identifier: Apache-2.0
"""The command lines of the programs that fit constants."""
import sys


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
