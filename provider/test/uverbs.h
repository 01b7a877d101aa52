/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* ioctl(), mmap() and munmap() that replace those of libc, and simulate uverbs with a device. */
#ifndef ROAN_TEST_UVERBS_H
#define ROAN_TEST_UVERBS_H

#include <stdbool.h>
#include <stdint.h>
#include <rdma/roan-abi.h>

#define RING_SIZE	65536
#define SLOTS		4
#define SECOND_RING	4096	/* bytes from the start of a mapping that has two */

extern uint8_t *rings[24];	/* by mmap offset / RING_SIZE; 0 is not used */
extern int mapped;		/* how many of them are */
extern unsigned int num_rings;
extern unsigned int doorbells, rung_for;	/* doorbell calls, and the QP handles they passed */
extern unsigned int resizes;

/* Set by the test: */
extern bool one_mapping;	/* SQ and RQ of a QP share a mapping (ROAN_FEATURE_ONE_MAPPING) */
extern bool no_space;		/* of addresses: only what is mapped already can be replaced */
extern bool no_space_after_resize;
extern uint64_t features_in_effect;	/* that QUERY_CONTEXT returns for an imported context */
extern bool removed;		/* the device: system calls on an object fail with EIO, as uverbs lets them */
extern bool dm_mappable;	/* device memory is a ring, else it cannot be mapped */

#endif
