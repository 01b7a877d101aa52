// SPDX-License-Identifier: GPL-2.0
/* The two devices, each in its network namespace: their uverbs files, GIDs, parameters, and how they are made anew. */
#define _GNU_SOURCE
#include "fuzz.h"
#include "devices.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct device devices[CONTEXTS] = {
	{ .name = "roan1", .netdev = "v1", .netns = "h1" },
	{ .name = "roan2", .netdev = "v2", .netns = "h2" },
};
struct sysfs_file sysfs[MAX_SYSFS];
uint32_t nr_sysfs;
int raw_socket = -1, link_socket = -1, link_index;
static int route_socket[CONTEXTS], netdev_index[CONTEXTS];

/* Switches to a namespace that `ip netns` made; NULL: back to the first. */
int in_netns(const char *name)
{
	static int first = -1;
	char path[64];
	int fd, rc;

	if (first < 0)
		first = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (!name)
		return setns(first, CLONE_NEWNET);
	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	rc = setns(fd, CLONE_NEWNET);
	close(fd);
	return rc;
}

static bool read_text(const char *path, char *buf, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, room - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	buf[n] = 0;
	buf[strcspn(buf, "\n")] = 0;
	return true;
}

static bool find_uverbs(struct device *d)
{
	DIR *dir = opendir("/sys/class/infiniband_verbs");
	char path[300], name[64];
	struct dirent *e;
	bool found = false;

	while (dir && !found && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/sys/class/infiniband_verbs/%s/ibdev", e->d_name);
		if (!read_text(path, name, sizeof(name)) || strcmp(name, d->name))
			continue;
		snprintf(d->path, sizeof(d->path), "/dev/infiniband/%.32s", e->d_name);
		found = true;
	}
	if (dir)
		closedir(dir);
	return found;
}

static void find_gids(struct device *d)
{
	char path[128], text[64];
	uint32_t i, j;

	d->gids = 0;
	for (i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gids/%u", d->name, i);
		if (!read_text(path, text, sizeof(text)) || strlen(text) < 39)
			return;
		for (j = 0; j < 16; j++)
			d->gid[i][j] = strtoul((char[3]) { text[j / 2 * 5 + j % 2 * 2], text[j / 2 * 5 + j % 2 * 2 + 1] }, NULL, 16);
		d->gids++;
	}
}

static void find_parameters(const char *folder, int c, bool restore)
{
	DIR *dir = opendir(folder);
	struct sysfs_file *f;
	struct dirent *e;

	while (dir && nr_sysfs < MAX_SYSFS && (e = readdir(dir))) {
		f = &sysfs[nr_sysfs];
		if (e->d_type != DT_REG || !strcmp(e->d_name, "uevent"))
			continue;
		snprintf(f->path, sizeof(f->path), "%.100s/%.50s", folder, e->d_name);
		f->device = c;
		f->writable = !access(f->path, W_OK) && restore;
		if (read_text(f->path, f->original, sizeof(f->original)))
			nr_sysfs++;
	}
	if (dir)
		closedir(dir);
}

int netlink_send(int cmd, int flags, const void *attrs, size_t len, void *answer, size_t room)
{
	struct {
		struct nlmsghdr hdr;
		uint8_t attrs[512];
	} msg = { .hdr = { .nlmsg_len = sizeof(msg.hdr) + len, .nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, cmd),
			   .nlmsg_flags = NLM_F_REQUEST | flags } };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA), n = -1, i;
	uint8_t more[8192];

	if (fd < 0)
		return -1;
	memcpy(msg.attrs, attrs, len);
	++*calls_done;
	if (send(fd, &msg, msg.hdr.nlmsg_len, 0) >= 0) {
		n = recv(fd, answer ?: more, answer ? room : sizeof(more), MSG_DONTWAIT);
		for (i = 0; i < 8 && recv(fd, more, sizeof(more), MSG_DONTWAIT) > 0; i++)
			;
	}
	close(fd);
	return n;
}

static void find_indices(void)
{
	uint8_t buf[16384];
	int n = netlink_send(RDMA_NLDEV_CMD_GET, NLM_F_DUMP, NULL, 0, buf, sizeof(buf)), len, c;
	struct nlmsghdr *h = (void *)buf;

	for (; n > 0 && NLMSG_OK(h, (uint32_t)n); h = NLMSG_NEXT(h, n)) {
		struct nlattr *at = NLMSG_DATA(h);
		uint32_t index = 0;

		for (len = h->nlmsg_len - NLMSG_HDRLEN; len >= 4 && at->nla_len >= 4 && at->nla_len <= len;
		     len -= NLA_ALIGN(at->nla_len), at = (void *)((uint8_t *)at + NLA_ALIGN(at->nla_len))) {
			if (at->nla_type == RDMA_NLDEV_ATTR_DEV_INDEX)
				memcpy(&index, at + 1, 4);
			for (c = 0; at->nla_type == RDMA_NLDEV_ATTR_DEV_NAME && c < CONTEXTS; c++) {
				if (!strcmp((char *)(at + 1), devices[c].name))
					devices[c].index = index;
			}
		}
	}
}

static size_t put(uint8_t *at, uint16_t type, const void *data, uint16_t len)
{
	struct nlattr attr = { .nla_len = sizeof(attr) + len, .nla_type = type };

	memcpy(at, &attr, sizeof(attr));
	memcpy(at + sizeof(attr), data, len);
	return NLA_ALIGN(attr.nla_len);
}

void new_link(int c)
{
	const struct device *d = &devices[c];
	uint8_t attrs[256] = { 0 };
	size_t len = 0;

	if (in_netns(d->netns))
		return;
	len += put(attrs + len, RDMA_NLDEV_ATTR_DEV_NAME, d->name, strlen(d->name) + 1);
	len += put(attrs + len, RDMA_NLDEV_ATTR_LINK_TYPE, "roan", 5);
	len += put(attrs + len, RDMA_NLDEV_ATTR_NDEV_NAME, d->netdev, strlen(d->netdev) + 1);
	netlink_send(RDMA_NLDEV_CMD_NEWLINK, NLM_F_ACK, attrs, len, NULL, 0);
	in_netns(NULL);
}

void write_parameter(uint32_t i, const char *text)
{
	int fd = open(sysfs[i].path, O_WRONLY | O_CLOEXEC);

	++*calls_done;
	sysfs[i].changed = true;
	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		(void)errno;
	close(fd);
}

/* Puts netem at the root of the device's interface. */
void set_wire(int c, const struct tc_netem_qopt *netem)
{
	struct {
		struct nlmsghdr hdr;
		struct tcmsg tc;
		uint8_t attrs[64];
	} msg = { .hdr = { .nlmsg_type = RTM_NEWQDISC, .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_REPLACE },
		  .tc = { .tcm_family = AF_UNSPEC, .tcm_ifindex = netdev_index[c], .tcm_parent = TC_H_ROOT, .tcm_handle = 0x10000 } };
	size_t len = put(msg.attrs, TCA_KIND, "netem", 6);

	len += put(msg.attrs + len, TCA_OPTIONS, netem, sizeof(*netem));
	msg.hdr.nlmsg_len = offsetof(typeof(msg), attrs) + len;
	++*calls_done;
	send(route_socket[c], &msg, msg.hdr.nlmsg_len, 0);
}

/* Devices, wire and parameters are as they were before the program. */
void devices_repair(struct run *r)
{
	uint32_t i;
	int c, tries;

	for (c = 0; r->devices_changed && c < CONTEXTS; c++) {
		if (!find_uverbs(&devices[c]))
			new_link(c);
		for (tries = 0; tries < 200; tries++) {
			if (find_uverbs(&devices[c]) && !access(devices[c].path, R_OK))
				break;
			usleep(10000);
		}
		for (tries = 0; tries < 100; tries++) {
			find_gids(&devices[c]);
			if (devices[c].gids == 3)
				break;
			usleep(10000);
		}
	}
	if (r->devices_changed)
		find_indices();
	for (c = 0; r->wire_changed && c < CONTEXTS; c++)
		set_wire(c, &(struct tc_netem_qopt) { .limit = 1000 });
	for (i = 0; i < nr_sysfs; i++) {
		if (sysfs[i].changed)
			write_parameter(i, sysfs[i].original);
		sysfs[i].changed = false;
	}
}

void devices_find(void)
{
	char path[128];
	int c;

	in_netns(NULL);
	for (c = 0; c < CONTEXTS; c++) {
		if (!find_uverbs(&devices[c])) {
			fprintf(stderr, "no device %s\n", devices[c].name);
			exit(2);
		}
		find_gids(&devices[c]);
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s", devices[c].name);
		find_parameters(path, c, true);
		strcat(path, "/ports/1/cc_param");
		find_parameters(path, c, true);
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters", devices[c].name);
		find_parameters(path, c, false);
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/counters", devices[c].name);
		find_parameters(path, c, false);
	}
	find_indices();
	for (c = 0; c < CONTEXTS; c++) {
		in_netns(devices[c].netns);
		route_socket[c] = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
		netdev_index[c] = if_nametoindex(devices[c].netdev);
	}
	raw_socket = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, 255);
	link_socket = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	link_index = netdev_index[1];
	in_netns(NULL);
}
