/* SPDX-License-Identifier: GPL-2.0 */
/* dma-bufs of display drivers. */
#ifndef ROAN_SELFTEST_DRM_H
#define ROAN_SELFTEST_DRM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A descriptor, at most 1.2 MB; -ENODEV: there is no such driver here, or it exports nothing; else -errno. */
int drm_export(const char *driver, size_t size, bool shown);

#endif
