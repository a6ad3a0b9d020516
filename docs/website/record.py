"""Runs the Python blocks of a page, and prints what each gives: a list of blocks comes in, a list of outputs goes out.

It is a process of its own, so that no page sees what another one has imported, registered or set.
"""

import json
import os
import sys
import tempfile

import runner


def main():
    blocks, outputs = json.load(sys.stdin), []
    python = runner.Runner()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number, code in enumerate(blocks, 1):
            given = []

            def show(kind, text, name, given=given):
                if kind == given[-1][0] == "text" if given else False:
                    given[-1][1] += text
                else:
                    given.append([kind, text, name])

            if python.run(number, code, show):
                sys.exit(given[-1][1])
            outputs.append(given)
        os.chdir("/")
    json.dump(outputs, sys.stdout)


if __name__ == "__main__":
    main()
