/* SPDX-License-Identifier: GPL-2.0 */
/* dma-bufs of display drivers. */
#ifndef ROAN_SELFTEST_DRM_H
#define ROAN_SELFTEST_DRM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns a dma-buf descriptor of at most 1.2 MB; -ENODEV: no such driver, or it cannot export; otherwise -errno. */
int drm_export(const char *driver, size_t size, bool shown);

#endif
