# SPDX-License-Identifier: GPL-2.0
"""pause.py: builds pause frames (802.1Qbb), valid or invalid."""
import struct

FOR_EVER = 0xFFFF
TO = bytes.fromhex("0180c2000001")
NOBODY = bytes.fromhex("020000000042")


def frame(enabled, quanta=FOR_EVER, source=NOBODY, to=TO, kind=0x8808, opcode=0x0101, length=60):
    """A frame that pauses each enabled priority for @quanta."""
    times = [quanta if enabled >> i & 1 else 0 for i in range(8)]
    return (to + source + struct.pack(">HHH8H", kind, opcode, enabled, *times)).ljust(length, b"\0")[:length]
