// SPDX-License-Identifier: GPL-2.0
/* One call of the uverbs file: a command of the write() interface, by write() or as an ioctl; a method; the doorbell. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

uint64_t *calls_done;
bool verbose;

int do_ioctl(struct run *r, int c, uint16_t object, uint16_t method, struct ib_uverbs_attr *attrs, uint32_t n)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[16];
	} call = {
		.hdr = { .length = sizeof(call.hdr) + n * sizeof(*attrs), .object_id = object, .method_id = method,
			 .num_attrs = n, .driver_id = ROAN_DRIVER_ID },
	};
	int rc;

	/*
	 * If this method fails, ib_uverbs of Linux 6.12 does not give back the context's reference to the calling task
	 * (kfree() without rdma_restrack_put()), with any driver, and kmemleak reports the task. So it runs only where
	 * it succeeds.
	 */
	if (object == UVERBS_OBJECT_DEVICE && method == UVERBS_METHOD_GET_CONTEXT && !r->ctx[c].opening)
		return EPERM;
	memcpy(call.attrs, attrs, n * sizeof(*attrs));
	++*calls_done;
	rc = ioctl(r->ctx[c].fd, RDMA_VERBS_IOCTL, &call.hdr) ? errno : 0;
	memcpy(attrs, call.attrs, n * sizeof(*attrs));
	if (verbose)
		printf("  ioctl object %u method %#x: %s\n", object, method, strerror(rc));
	return rc;
}

static struct ib_uverbs_attr in(uint16_t id, const void *data, uint32_t len)
{
	struct ib_uverbs_attr attr = { .attr_id = id, .len = len, .data = (uintptr_t)data };

	if (len <= sizeof(attr.data)) {		/* short ones are passed inline */
		attr.data = 0;
		memcpy(&attr.data, data, len);
	}
	return attr;
}

static int invoke(struct run *r, int c, const struct wcmd *w)
{
	struct ib_uverbs_attr attrs[5];
	uint64_t command = w->command;
	uint32_t n = 0;

	attrs[n++] = in(UVERBS_ATTR_WRITE_CMD, &command, sizeof(command));
	if (w->core_len)
		attrs[n++] = in(UVERBS_ATTR_CORE_IN, w->core, w->core_len);
	if (w->resp_len)
		attrs[n++] = (struct ib_uverbs_attr) { .attr_id = UVERBS_ATTR_CORE_OUT, .len = w->resp_len, .data = (uintptr_t)w->resp };
	if (w->udata_len)
		attrs[n++] = in(UVERBS_ATTR_UHW_IN, w->udata, w->udata_len);
	if (w->uresp_len)
		attrs[n++] = (struct ib_uverbs_attr) { .attr_id = UVERBS_ATTR_UHW_OUT, .len = w->uresp_len, .data = (uintptr_t)w->uresp };
	return do_ioctl(r, c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, attrs, n);
}

static int plain_write(struct run *r, int c, const struct wcmd *w)
{
	uint64_t room[128] = { 0 }, answer[128] = { 0 }, resp = (uintptr_t)answer;
	struct ib_uverbs_cmd_hdr *hdr = (void *)room;
	uint8_t *core = (uint8_t *)(hdr + 1);
	size_t len = sizeof(*hdr) + w->core_len + w->udata_len;

	hdr->command = w->command;
	hdr->in_words = len / 4;
	hdr->out_words = (w->resp_len + w->uresp_len) / 4;
	memcpy(core, w->core, w->core_len);
	if (w->resp_len + w->uresp_len && w->core_len >= sizeof(resp))
		memcpy(core, &resp, sizeof(resp));
	memcpy(core + w->core_len, w->udata, w->udata_len);
	++*calls_done;
	if (write(r->ctx[c].fd, room, len) != (ssize_t)len) {
		if (verbose)
			printf("  write command %u: %s\n", w->command, strerror(errno));
		return errno;
	}
	memcpy(w->resp, answer, w->resp_len);
	if (w->uresp_len)
		memcpy(w->uresp, (uint8_t *)answer + w->resp_len, w->uresp_len);
	return 0;
}

/* With @a wrong, one byte of the request or one of the lengths is. */
int do_write(struct run *r, int c, const struct wcmd *wanted, const uint8_t *a)
{
	struct wcmd w = *wanted;
	uint8_t junk[64];
	int i;

	if (a && wrong(a)) {
		switch (a[14] % 8) {
		case 0: w.core_len = a[13] % (w.core_len + 1) & ~3; break;
		case 1: w.resp_len = a[13] % (w.resp_len + 1) & ~3; break;
		case 2: w.uresp_len = a[13] % (w.uresp_len + 1) & ~3; break;
		case 3:
			for (i = 0; i < 64; i++)
				junk[i] = a[13] & 1 ? 0 : a[i % 15];
			w.udata = junk;
			w.udata_len = a[12] % 17 * 4;
			break;
		case 4: w.command ^= 1 << a[13] % 6; break;
		default:
			if (w.core_len)
				((uint8_t *)w.core)[(a[13] + (a[14] >> 3)) % w.core_len] ^= a[12] | 1;
			break;
		}
	}
	if (w.command & EX || (a && a[0] & 0x40))
		return invoke(r, c, &w);
	return plain_write(r, c, &w);
}

void ring_doorbell(struct run *r, int c, const uint32_t *handles, uint32_t n)
{
	struct ib_uverbs_attr attr = { .attr_id = ROAN_ATTR_QP_DOORBELL_HANDLES, .len = n * 4, .flags = UVERBS_ATTR_F_MANDATORY,
				       .data = (uintptr_t)handles };

	if (n && n <= 2) {
		attr.data = 0;
		memcpy(&attr.data, handles, n * 4);
	}
	do_ioctl(r, c, UVERBS_OBJECT_QP, ROAN_METHOD_QP_DOORBELL, &attr, n ? 1 : 0);
}
