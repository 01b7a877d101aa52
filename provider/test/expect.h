/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A check that prints what is false, and counts it. */
#ifndef ROAN_TEST_EXPECT_H
#define ROAN_TEST_EXPECT_H

#include <stdio.h>

static int failures;

#define EXPECT(what)								\
	do {									\
		if (!(what)) {							\
			printf("FAIL %s:%d: %s\n", __FILE__, __LINE__, #what);	\
			failures++;						\
		}								\
	} while (0)

#endif
