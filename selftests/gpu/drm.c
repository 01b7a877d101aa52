// SPDX-License-Identifier: GPL-2.0
/*
 * dma-bufs of display drivers, as exporters that were not written for these tests. vgem exports pages. bochs drives
 * QEMU's VGA adapter; a buffer that is displayed is in its frame buffer, which is I/O memory.
 *
 * The ioctls are defined here, as not every machine has the kernel's headers for them.
 */
#define _GNU_SOURCE
#include "drm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct version {
	int number[3];
	size_t name_len;
	char *name;
	size_t date_len;
	char *date;
	size_t desc_len;
	char *desc;
};

struct dumb {
	__u32 height, width, bpp, flags, handle, pitch;
	__u64 size;
};

struct prime {
	__u32 handle, flags;
	__s32 fd;
};

struct resources {
	__u64 fbs, crtcs, connectors, encoders;
	__u32 n_fbs, n_crtcs, n_connectors, n_encoders, min_width, max_width, min_height, max_height;
};

struct frame {
	__u32 id, width, height, pitch, bpp, depth, handle;
};

struct mode {
	__u32 clock;
	__u16 h, h_sync, h_sync_end, h_total, h_skew, v, v_sync, v_sync_end, v_total, v_scan;
	__u32 refresh, flags, type;
	char name[32];
};

struct crtc {
	__u64 connectors;
	__u32 n_connectors, id, frame, x, y, gamma, mode_valid;
	struct mode mode;
};

#define GET_VERSION	_IOWR('d', 0x00, struct version)
#define DROP_MASTER	_IO('d', 0x1f)
#define EXPORT		_IOWR('d', 0x2d, struct prime)
#define GET_RESOURCES	_IOWR('d', 0xa0, struct resources)
#define SET_CRTC	_IOWR('d', 0xa2, struct crtc)
#define ADD_FRAME	_IOWR('d', 0xae, struct frame)
#define CREATE_DUMB	_IOWR('d', 0xb2, struct dumb)

#define WIDTH	640
#define HEIGHT	480

static int open_card(const char *driver)
{
	char path[32], name[32];
	struct version v;
	int i, fd;

	for (i = 0; i < 8; i++) {
		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		memset(&v, 0, sizeof(v));
		memset(name, 0, sizeof(name));
		v.name = name;
		v.name_len = sizeof(name) - 1;
		if (!ioctl(fd, GET_VERSION, &v) && !strcmp(name, driver))
			return fd;
		close(fd);
	}
	return -1;
}

/* Displays the buffer on the first display, so that it is in the frame buffer and stays there while it is mapped. */
static int show(int card, const struct dumb *dumb)
{
	struct frame frame = { .width = WIDTH, .height = HEIGHT, .pitch = dumb->pitch, .bpp = 32, .depth = 24,
			       .handle = dumb->handle };
	struct crtc crtc = { .n_connectors = 1, .mode_valid = 1,
			     .mode = { .clock = 25175, .h = WIDTH, .h_sync = 656, .h_sync_end = 752, .h_total = 800, .v = HEIGHT,
				       .v_sync = 490, .v_sync_end = 492, .v_total = 525, .refresh = 60 } };
	struct resources res = { .n_crtcs = 1, .n_connectors = 1 };
	__u32 crtc_id = 0, connector = 0;

	res.crtcs = (uintptr_t)&crtc_id;
	res.connectors = (uintptr_t)&connector;
	if (ioctl(card, GET_RESOURCES, &res) || ioctl(card, ADD_FRAME, &frame))
		return -1;
	crtc.connectors = (uintptr_t)&connector;
	crtc.id = crtc_id;
	crtc.frame = frame.id;
	if (ioctl(card, SET_CRTC, &crtc))
		return -1;
	return ioctl(card, DROP_MASTER);	/* so that the next process to open the card can set a mode */
}

int drm_export(const char *driver, size_t size, bool shown)
{
	struct dumb dumb = { .width = WIDTH, .height = HEIGHT, .bpp = 32 };
	struct prime prime = { .flags = O_RDWR | O_CLOEXEC };
	int card = open_card(driver);

	if (card < 0)
		return -ENODEV;
	/* The card stays open: closing its last descriptor ends the display. */
	if (ioctl(card, CREATE_DUMB, &dumb) || dumb.size < size || (shown && show(card, &dumb)))
		return errno ? -errno : -EINVAL;
	prime.handle = dumb.handle;
	if (ioctl(card, EXPORT, &prime))
		return errno == ENOSYS ? -ENODEV : -errno;
	return prime.fd;
}
