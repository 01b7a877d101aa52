#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Runs a program on a pseudo-terminal of 80x24 characters, presses keys, and prints the screen as a user sees it.

    screen.py [-t SECONDS] STEP... -- COMMAND...

A step is until=REGEX (wait until a line of the screen matches), gone=REGEX (until none does), or press=KEYS (a character or up, down,
left, right, enter, esc). Prints the last screen. NO_SIZE=1: the terminal knows no size. Status 1: a step took longer than SECONDS (60), or the screen
has colours.
"""
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

import pyte

KEYS = {"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "enter": "\r", "esc": "\x1b"}


class Terminal:
    def __init__(self, command):
        self.screen = pyte.Screen(80, 24)
        self.stream = pyte.ByteStream(self.screen)
        pid, self.fd = pty.fork()
        if not pid:
            os.environ.update(TERM="vt100", LINES="24", COLUMNS="80")	# a terminal without colours
            if not os.environ.get("NO_SIZE"):
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            os.execvp(command[0], command)

    def feed(self, seconds):
        """False: the program has ended."""
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return False
            self.stream.feed(data)
            return bool(data)
        return True

    def settle(self):
        """Reads until the program has drawn nothing for 0.2 s."""
        while select.select([self.fd], [], [], 0.2)[0] and self.feed(0):
            pass

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def wait(self, test, seconds):
        until, alive = time.monotonic() + seconds, True
        while not test(self.lines()):
            if not alive or time.monotonic() > until:
                return False
            alive = self.feed(0.1)
        return True

    def colours(self):
        return {c.fg for row in self.screen.buffer.values() for c in row.values()} - {"default"}


def main():
    words, seconds = sys.argv[1:], 60
    if words[0] == "-t":
        seconds, words = float(words[1]), words[2:]
    steps, command = words[:words.index("--")], words[words.index("--") + 1:]
    terminal, failed = Terminal(command), None
    for step in steps:
        kind, _, text = step.partition("=")
        if kind == "press":
            os.write(terminal.fd, KEYS.get(text, text).encode())
        else:
            found = lambda lines: any(re.search(text, line) for line in lines)
            if not terminal.wait(found if kind == "until" else lambda lines: not found(lines), seconds):
                failed = "%s did not happen within %g s" % (step, seconds)
                break
    if not failed:
        terminal.settle()
    if not failed and terminal.colours():
        failed = "colours: %s" % terminal.colours()
    print("\n".join(terminal.lines()))
    os.close(terminal.fd)
    if failed:
        sys.exit(failed)


main()
