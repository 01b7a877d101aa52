// SPDX-License-Identifier: GPL-2.0
/* Call types that are not verbs: rdma netlink, parameters in sysfs, memory that is registered, descriptors, processes. */
#define _GNU_SOURCE
#include "fuzz.h"
#include "devices.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/udmabuf.h>
#include <poll.h>
#include <rdma/rdma_netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t put_u32(uint8_t *at, uint16_t type, uint32_t v)
{
	struct nlattr attr = { .nla_len = 8, .nla_type = type };

	memcpy(at, &attr, 4);
	memcpy(at + 4, &v, 4);
	return 8;
}

static void netlink(struct run *r, const uint8_t *a)
{
	static const uint8_t commands[] = {
		RDMA_NLDEV_CMD_GET, RDMA_NLDEV_CMD_PORT_GET, RDMA_NLDEV_CMD_RES_GET, RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_CMD_RES_CQ_GET,
		RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_CMD_RES_SRQ_GET, RDMA_NLDEV_CMD_RES_CTX_GET,
		RDMA_NLDEV_CMD_RES_QP_GET_RAW, RDMA_NLDEV_CMD_RES_CQ_GET_RAW, RDMA_NLDEV_CMD_RES_MR_GET_RAW, RDMA_NLDEV_CMD_STAT_GET,
		RDMA_NLDEV_CMD_STAT_SET, RDMA_NLDEV_CMD_STAT_DEL, RDMA_NLDEV_CMD_STAT_GET_STATUS, RDMA_NLDEV_CMD_GET_CHARDEV, RDMA_NLDEV_CMD_SYS_GET,
	};
	int c = ctx_of(a), cmd = a[1] < 240 ? commands[a[1] % ARRAY_SIZE(commands)] : commands[a[2] % ARRAY_SIZE(commands)];
	struct object *qp = pick(r, c, QP, a[4]);
	uint8_t attrs[128];
	size_t len = 0;

	len += put_u32(attrs + len, RDMA_NLDEV_ATTR_DEV_INDEX, a[2] < 240 ? devices[c].index : a[2]);
	if (a[3] & 1)
		len += put_u32(attrs + len, RDMA_NLDEV_ATTR_PORT_INDEX, a[3] < 240 ? 1 : a[3]);
	if (a[3] & 2)
		len += put_u32(attrs + len, RDMA_NLDEV_ATTR_RES_LQPN, qp && a[4] < 240 ? qp->num : a[4]);
	if (a[3] & 4)
		len += put_u32(attrs + len, RDMA_NLDEV_ATTR_STAT_RES, a[5] & 1 ? RDMA_NLDEV_ATTR_RES_QP : RDMA_NLDEV_ATTR_RES_MR);
	if (a[3] & 8)
		len += put_u32(attrs + len, RDMA_NLDEV_ATTR_STAT_MODE, a[6] % 4);
	if (a[3] & 16)
		len += put_u32(attrs + len, RDMA_NLDEV_ATTR_STAT_AUTO_MODE_MASK, a[7] % 8);
	if (wrong(a))
		len += put_u32(attrs + len, a[13] % 110, value(a[14]));
	netlink_send(cmd, a[8] & 1 ? NLM_F_DUMP : NLM_F_ACK, attrs, len, NULL, 0);
}

static void del_link(struct run *r, const uint8_t *a)
{
	uint8_t attrs[16];
	int c = ctx_of(a);

	r->devices_changed = true;
	if (in_netns(devices[c].netns))
		return;
	netlink_send(RDMA_NLDEV_CMD_DELLINK, NLM_F_ACK, attrs, put_u32(attrs, RDMA_NLDEV_ATTR_DEV_INDEX, devices[c].index), NULL, 0);
	in_netns(NULL);
	if (a[1] & 1)
		new_link(c);
}

static void new_link_call(struct run *r, const uint8_t *a)
{
	r->devices_changed = true;
	new_link(ctx_of(a));
}

static void parameter(struct run *r, const uint8_t *a)
{
	static const char *const words[] = { "dcqcn", "swift", "fixed", "none", "", "-1", "0x10", "1 2", "4294967296", "x\n", "all", "off" };
	uint32_t i, tries;
	char text[128];
	int fd;

	if (!nr_sysfs)
		return;
	i = (a[1] | a[2] << 8) % nr_sysfs;
	for (tries = 0; a[3] & 7 && !sysfs[i].writable && tries < nr_sysfs; tries++)
		i = (i + 1) % nr_sysfs;
	if (!(a[3] & 7) || !sysfs[i].writable) {
		++*calls_done;
		fd = open(sysfs[i].path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && read(fd, text, sizeof(text)) < 0)
			(void)errno;
		if (fd >= 0)
			close(fd);
		return;
	}
	for (tries = 0; a[3] & 0x80 && !strstr(sysfs[i].path, "/algo") && !strstr(sysfs[i].path, "/paths") && tries < nr_sysfs; tries++)
		i = (i + 1) % nr_sysfs;
	r->sysfs_changed = true;
	if (strstr(sysfs[i].path, "/algo") && a[4] < 220)
		snprintf(text, sizeof(text), "%s", words[a[5] % 4]);
	else if (a[4] < 100)
		snprintf(text, sizeof(text), "%u", a[5]);
	else if (a[4] < 180)
		snprintf(text, sizeof(text), "%llu", (unsigned long long)value(a[5]));
	else
		snprintf(text, sizeof(text), "%s", words[a[5] % ARRAY_SIZE(words)]);
	write_parameter(i, text);
}

/* Changes the mappings behind registered memory. */
static void memory(struct run *r, const uint8_t *a)
{
	uint8_t *at = arena + a[1] % 48 * 4096ul;
	size_t len = (1 + a[2] % 32) * 4096ul;

	r->memory_changed = true;
	++*calls_done;
	switch (a[3] % 8) {
	case 0: madvise(at, len, MADV_DONTNEED); break;
	case 1: mprotect(at, len, a[4] % 4); break;
	case 2: mprotect(at, len, PROT_READ | PROT_WRITE); break;
	case 3: munmap(at, len); break;
	case 4: mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0); break;
	case 5: mmap(at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0); break;
	case 6: madvise(at, len, MADV_PAGEOUT); break;
	case 7: memset(at, a[4], len); break;
	}
}

static void dmabuf(struct run *r, const uint8_t *a)
{
	int c = ctx_of(a), fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING), dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), buf;
	struct udmabuf_create create = { .memfd = fd, .size = (1 + a[1] % 16) * 4096ul };

	if (fd >= 0 && dev >= 0 && !ftruncate(fd, create.size) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)) {
		++*calls_done;
		buf = ioctl(dev, UDMABUF_CREATE, &create);
		if (buf >= 0)
			add(r, c, DMABUF, buf);
		if (verbose)
			printf("  udmabuf: %d\n", buf);
	}
	close(fd);
	close(dev);
}

static void events(struct run *r, const uint8_t *a)
{
	struct object *o = pick(r, ctx_of(a), a[1] & 1 ? CHANNEL : ASYNC, a[2]);
	struct pollfd p = { .events = POLLIN };

	if (!o)
		return;
	p.fd = o->handle;
	poll(&p, 1, a[3] % 4);
	read_events(o->handle);
}

static void close_fd(struct run *r, const uint8_t *a)
{
	static const enum kind kinds[] = { CHANNEL, ASYNC, DMABUF };
	struct object *o = pick(r, ctx_of(a), kinds[a[1] % 3], a[2]);

	++*calls_done;
	if (o)
		forget(r, ctx_of(a), kinds[a[1] % 3], o->handle);
}

/* The context lives on through a second descriptor, or through mappings only. */
static void dup_file(struct run *r, const uint8_t *a)
{
	struct context *x = &r->ctx[ctx_of(a)];
	int fd;

	++*calls_done;
	if (x->fd < 0)
		return;
	fd = fcntl(x->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return;
	close(x->fd);
	x->fd = fd;
}

/* A child uses the parent's file, regions and rings, and ends; with a[1] bit 0 at the same time as the parent. */
static void fork_child(struct run *r, const uint8_t *a)
{
	struct object *qp = pick(r, ctx_of(a), QP, a[2]);
	pid_t pid;

	if (r->children > 2)
		return;
	++*calls_done;
	pid = fork();
	if (!pid) {
		if (qp && qp->ring[0].ctl) {
			qp->ring[0].ctl->user.index += 1;
			ring_doorbell(r, ctx_of(a), &qp->handle, 1);
		}
		arena[0] = 1;
		if (a[3] & 1)
			alloc_pd(r, ctx_of(a), a);
		_exit(0);
	}
	if (pid < 0)
		return;
	if (a[1] & 1)
		r->children++;
	else
		waitpid(pid, NULL, 0);
}

const struct call_type system_calls[] = {
	{ "netlink", 25, netlink }, { "del_link", 1, del_link }, { "new_link", 1, new_link_call }, { "parameter", 25, parameter },
	{ "memory", 30, memory }, { "udmabuf", 8, dmabuf }, { "events", 10, events }, { "close_fd", 5, close_fd }, { "dup", 2, dup_file },
	{ "fork", 1, fork_child },
	{ 0 }
};
