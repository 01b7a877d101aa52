/* SPDX-License-Identifier: GPL-2.0 */
/* How much memory is charged, and which memory of the device the program maps. Of memory_limit. */
#ifndef MEMORY_USAGE_H
#define MEMORY_USAGE_H

#include <stdbool.h>
#include <stddef.h>

#define KIB	1024l
#define MIB	(1024 * KIB)
#define PAGE	4096l

long usage_pinned(void);				/* VmPin in bytes */
bool usage_pinned_becomes(long bytes);			/* within 5 s */

/*
 * The program's mmap() and munmap() replace the C library's, for the provider too. Mappings of the device's file are
 * counted; while @usage_keep_mapped is set munmap() leaves them mapped.
 */
extern bool usage_keep_mapped;
size_t usage_mapped(void);	/* bytes of the device's file that were mapped so far, unmapped ones included */
void usage_unmap_all(void);

/* memory_table.c */
struct vt_dev;
void table(struct vt_dev *dev, const char *cgroup);

#endif
