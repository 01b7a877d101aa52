/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the kernel module (coverage.c) and the fuzzer; lines.py reads it, too. */
#ifndef ROAN_COVERAGE_H
#define ROAN_COVERAGE_H

#define ROAN_COVERAGE_BITS	(1ul << 21)	/* bytes of the module's text that the bits cover */

struct roan_coverage {
	unsigned long text;	/* address of the module's text */
	unsigned long set;	/* how often a bit has been set */
	unsigned long reserved[510];
	/* Bit N is set: a basic block has run. Its call of __sanitizer_cov_trace_pc() returns to text + N. */
	unsigned long bits[ROAN_COVERAGE_BITS / 8 / sizeof(long)];
};

#endif
