# SPDX-License-Identifier: Apache-2.0
"""In place of tyro: a data class from words such as `--num-envs 8` and `--no-capture-video`."""
import dataclasses
import sys


def cli(kind):
    made, words = kind(), sys.argv[1:]
    types = {field.name: type(getattr(made, field.name)) for field in dataclasses.fields(made)}
    while words:
        name = words.pop(0).lstrip("-").replace("-", "_")
        if name in types and types[name] is not bool:
            setattr(made, name, types[name](words.pop(0)))
        elif name in types:
            setattr(made, name, True)
        elif name.startswith("no_") and name[3:] in types:
            setattr(made, name[3:], False)
        else:
            raise SystemExit(f"no option {name}")
    return made
