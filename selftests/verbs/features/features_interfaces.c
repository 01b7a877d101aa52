// SPDX-License-Identifier: GPL-2.0
/*
 * Interfaces that rdma-core and kernels got since 2020: ECE, the port's speed as a number, device memory as a dma-buf,
 * DMA handles, buffers of the provider, completion counters. What this rdma-core lacks is not compiled (the Makefile
 * looks); what the kernel lacks is skipped, or fails with -n.
 */
#define _GNU_SOURCE
#include "features.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool newest_kernel;
const char *second_device;

/* ---- ECE ---- */

/* Else NCCL exchanges vendor IDs with its peer, and fails at the EINVAL of an adapter that does not know this one. */
static void ece(struct vt_dev *d)
{
	struct ibv_ece own = { 0 }, offer = { .vendor_id = 0x15b3, .options = 1 };
	int query, set;
	struct pair p;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	query = ibv_query_ece(p.qp[0], &own);
	set = ibv_set_ece(p.qp[0], &offer);
	vt_ok(query == EOPNOTSUPP && set == EOPNOTSUPP, "ECE: the device has none (errors %d, %d)", query, set);
	pair_close(&p);
}

/* True if the kernel lacks @what, which is reported here. */
__attribute__((unused))
static bool absent(int err, const char *what)
{
	if (err != EOPNOTSUPP)
		return false;
	if (newest_kernel)
		vt_ok(false, "%s: the kernel has it", what);
	else
		vt_ok_skip(what, "the kernel or the device has none");
	return true;
}

/* ---- the port's speed ---- */

#ifdef HAVE_ibv_query_port_speed
static double sysfs_rate(struct vt_dev *d)
{
	char path[512];
	double rate = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/ports/1/rate", d->ctx->device->ibdev_path);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%lf", &rate) != 1)
		rate = -1;
	if (f)
		fclose(f);
	return rate;
}

static void port_speed(struct vt_dev *d)
{
	double rate = sysfs_rate(d);
	uint64_t speed = 0;
	int err = ibv_query_port_speed(d->ctx, 1, &speed);

	if (absent(err, "port speed"))
		return;
	vt_ok(!err && speed == (uint64_t)(rate * 10), "port speed: %llu00 Mbit/s, the rate in sysfs is %g Gbit/s",
	      (unsigned long long)speed, rate);
	vt_ok(ibv_query_port_speed(d->ctx, 2, &speed) == EINVAL, "port speed: of a port that does not exist is EINVAL");
}
#endif

/* ---- device memory as a dma-buf ---- */

#ifdef HAVE_ibv_dm_export_dmabuf_fd
#define DM_SIZE	(5 * PAGE - 480)	/* whole pages are exported */

/* WRITEs to the second page of the dma-buf @fd and READs from it, over QPs of @d. */
static int dmabuf_traffic(struct vt_dev *d, int fd, uint64_t seed)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(d->pd, PAGE, 8192, PAGE, fd, RIGHTS & ~IBV_ACCESS_MW_BIND);
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct pair p;
	int err;

	if (!mr)
		return errno;
	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	vt_fill(p.buf, 8192, seed, 0);
	sge = sge_at(&p, 0, 8192);
	wr = (struct ibv_send_wr) {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { PAGE, mr->rkey },
	};
	err = post(&p, 0, wr) ?: status_of(p.scq[0], 10000) == IBV_WC_SUCCESS ? 0 : EIO;
	wr.opcode = IBV_WR_RDMA_READ;
	sge.addr += 65536;
	err = err ?: post(&p, 0, wr);
	if (!err && (status_of(p.scq[0], 10000) != IBV_WC_SUCCESS || vt_diff(p.buf + 65536, 8192, seed, 0) != 8192))
		err = EILSEQ;
	pair_close(&p);
	return ibv_dereg_mr(mr) ?: err;
}

static bool same_in_dm(struct ibv_dm *dm, size_t off, uint64_t seed)
{
	static uint8_t copy[8192];

	return !ibv_memcpy_from_dm(copy, dm, off, sizeof(copy)) && vt_diff(copy, sizeof(copy), seed, 0) == sizeof(copy);
}

static void dm_export(struct vt_dev *d)
{
	struct ibv_alloc_dm_attr attr = { .length = DM_SIZE };
	struct ibv_dm *dm = ibv_alloc_dm(d->ctx, &attr);
	struct vt_dev second;
	uint8_t *map;
	int fd, err;

	if (!dm)
		return vt_ok_skip("device memory as a dma-buf", "no device memory");
	fd = ibv_dm_export_dmabuf_fd(dm);
	if (fd < 0 && errno == EOPNOTSUPP) {
		vt_ok_skip("device memory as a dma-buf", "the device does not export it");
		ibv_free_dm(dm);
		return;
	}
	vt_ok(fd >= 0 && lseek(fd, 0, SEEK_END) == (off_t)(5 * PAGE), "DM export: a dma-buf of its whole pages");
	err = dmabuf_traffic(d, fd, 1);
	vt_ok(!err && same_in_dm(dm, PAGE, 1), "DM export: the same device writes and reads it (%s)", strerror(err));
	if (second_device) {
		vt_open(&second, second_device, false, -1, 1024);
		err = dmabuf_traffic(&second, fd, 2);
		vt_ok(!err && same_in_dm(dm, PAGE, 2), "DM export: another device writes and reads it (%s)", strerror(err));
		vt_close(&second);
	}
	map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);
	if (map != MAP_FAILED)
		vt_fill(map, 8192, 3, 0);
	vt_ok(map != MAP_FAILED && same_in_dm(dm, PAGE, 3), "DM export: a program maps it");
	vt_ok(mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 5 * PAGE) == MAP_FAILED, "DM export: a mapping behind its end fails");
	vt_ok(!ibv_free_dm(dm), "DM export: the device memory can be freed");
	err = dmabuf_traffic(d, fd, 4);
	vt_ok(!err && map != MAP_FAILED && vt_diff(map, 8192, 4, 0) == 8192,
	      "DM export: the dma-buf keeps the memory afterwards (%s)", strerror(err));
	if (map != MAP_FAILED)
		munmap(map, 8192);
	close(fd);
}
#endif

/* ---- DMA handles, buffers of the provider ---- */

#ifdef HAVE_ibv_alloc_dmah
static int mr_traffic(struct vt_dev *d, struct ibv_mr *mr, const uint8_t *at, uint64_t remote)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	int err;

	pair_open(&p, d, IBV_QPT_RC, 64, NULL);
	vt_fill(p.buf, 8192, 7, 0);
	sge = sge_at(&p, 0, 8192);
	wr = (struct ibv_send_wr) {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { remote, mr->rkey },
	};
	err = post(&p, 0, wr);
	if (!err && (status_of(p.scq[0], 10000) != IBV_WC_SUCCESS || vt_diff(at, 8192, 7, 0) != 8192))
		err = EILSEQ;
	pair_close(&p);
	return err;
}

static void dma_handles(struct vt_dev *d)
{
	struct ibv_dmah_init_attr hints = {
		.comp_mask = IBV_DMAH_INIT_ATTR_MASK_CPU_ID | IBV_DMAH_INIT_ATTR_MASK_PH | IBV_DMAH_INIT_ATTR_MASK_TPH_MEM_TYPE,
		.cpu_id = 0, .ph = 1, .tph_mem_type = IBV_TPH_MEM_TYPE_VM,
	};
	struct ibv_mr_init_attr init = {
		.length = 8192, .access = RIGHTS, .comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_DMAH,
	};
	uint8_t *buf = aligned_alloc(4096, 8192);
	struct ibv_dmah *dmah = ibv_alloc_dmah(d->ctx, &hints);
	struct ibv_mr *mr;
	int err = errno;

	if (!dmah && absent(err, "DMA handles")) {
		free(buf);
		return;
	}
	vt_ok(dmah != NULL, "DMAH: a handle with hints (%s)", dmah ? "" : strerror(err));
	init.addr = buf;
	init.dmah = dmah;
	mr = dmah ? ibv_reg_mr_ex(d->pd, &init) : NULL;
	err = mr ? mr_traffic(d, mr, buf, (uintptr_t)buf) : errno;
	vt_ok(!err, "DMAH: data arrives in a region with it (%s)", strerror(err));
	vt_ok(mr && ibv_dealloc_dmah(dmah), "DMAH: cannot be freed while a region uses it");
	vt_ok(mr && !ibv_dereg_mr(mr) && !ibv_dealloc_dmah(dmah), "DMAH: freed after the region");
	hints.cpu_id = 1 << 20;
	vt_ok(!ibv_alloc_dmah(d->ctx, &hints) && errno == EINVAL, "DMAH: a CPU that does not exist is EINVAL");
	hints.comp_mask |= 1u << 31;
	vt_ok(!ibv_alloc_dmah(d->ctx, &hints) && errno == EOPNOTSUPP, "DMAH: unknown hints are EOPNOTSUPP");
	free(buf);
}

/* ibv_reg_mr_ex() without a handle: one of the older calls. */
static void reg_mr_ex(struct vt_dev *d)
{
	uint8_t *buf = aligned_alloc(4096, 16384);
	struct ibv_mr_init_attr init = {
		.length = 8192, .access = RIGHTS, .addr = buf, .iova = 4096,
		.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_IOVA,
	};
	struct ibv_mr *mr = ibv_reg_mr_ex(d->pd, &init);
	int err = mr ? mr_traffic(d, mr, buf, 4096) : errno;

	vt_ok(!err && !ibv_dereg_mr(mr), "reg_mr_ex: a region with an address of its own (%s)", strerror(err));
	init.comp_mask = IBV_REG_MR_MASK_IOVA;
	vt_ok(!ibv_reg_mr_ex(d->pd, &init) && errno == EINVAL, "reg_mr_ex: without memory is EINVAL");
	init.comp_mask = IBV_REG_MR_MASK_ADDR | 1u << 30;
	vt_ok(!ibv_reg_mr_ex(d->pd, &init) && errno == EOPNOTSUPP, "reg_mr_ex: unknown fields are EOPNOTSUPP");
	free(buf);
}
#endif

#ifdef HAVE_ibv_alloc_buf
static void buffer_of_pd(struct vt_dev *d, struct ibv_pd *pd, const char *kind)
{
	struct ibv_buf *handle = NULL;
	uint8_t *buf = ibv_alloc_buf(pd, 16384, &handle);
	struct ibv_mr *mr = buf ? ibv_reg_buf_mr(pd, handle, buf + 4096, 8192, RIGHTS) : NULL;
	int err = mr ? mr_traffic(d, mr, buf + 4096, (uintptr_t)buf + 4096) : errno;

	vt_ok(!err && !ibv_dereg_mr(mr), "buffer of the provider, %s: data arrives in it (%s)", kind, strerror(err));
	vt_ok(buf && ibv_export_buf_dmabuf_fd(handle) == -1 && errno == ENODATA,
	      "buffer of the provider, %s: is no dma-buf: ENODATA", kind);
	if (buf)
		ibv_free_buf(handle);
}

static void provider_buffer(struct vt_dev *d)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = d->pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC,
	};
	struct ibv_pd *parent = ibv_alloc_parent_domain(d->ctx, &attr);

	buffer_of_pd(d, d->pd, "PD");
	if (parent)
		buffer_of_pd(d, parent, "parent domain");
	vt_ok(parent && !ibv_dealloc_pd(parent), "buffer of the provider: of a parent domain for confidential VMs");
}
#endif

/* ---- completion counters ---- */

#ifdef HAVE_ibv_create_comp_cntr
static const struct {
	const char *name;
	uint32_t op;
	int side;
} counted[] = {
	{ "SEND", IBV_QP_ATTACH_COMP_CNTR_OP_SEND, 0 },
	{ "WRITE", IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE, 0 },
	{ "READ", IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ, 0 },
	{ "RECV", IBV_QP_ATTACH_COMP_CNTR_OP_RECV, 1 },
	{ "remote WRITE", IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE, 1 },
	{ "remote READ", IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ, 1 },
};
#define N_COUNTED	(sizeof(counted) / sizeof(*counted))
enum { SENDS = 10, WRITES = 7, READS = 5, UNSIGNALED = 3, UNCOUNTED = 2 };
static const uint64_t expected[N_COUNTED] = { SENDS, WRITES + UNSIGNALED, READS, SENDS, WRITES + UNSIGNALED, READS };

static struct ibv_comp_cntr *new_counter(struct vt_dev *d)
{
	struct ibv_comp_cntr_init_attr init = { .type = IBV_COMP_CNTR_TYPE_WRS };

	return ibv_create_comp_cntr(d->ctx, &init);
}

static int attach(struct ibv_qp *qp, struct ibv_comp_cntr *cntr, uint32_t ops)
{
	struct ibv_qp_attach_comp_cntr_attr attr = { .op_mask = ops };

	return ibv_qp_attach_comp_cntr(qp, cntr, &attr);
}

static uint64_t value_of(struct ibv_comp_cntr *cntr, bool failed)
{
	uint64_t value = ~0ull;

	if (failed ? ibv_read_err_comp_cntr(cntr, &value) : ibv_read_comp_cntr(cntr, &value))
		return ~0ull;
	return value;
}

/* The counter's memory is written by the other end of a QP too, which may be a little later than our completion. */
static bool reaches(struct ibv_comp_cntr *cntr, uint64_t want)
{
	uint64_t end = vt_now_ms() + 5000;

	while (value_of(cntr, false) != want && vt_now_ms() < end)
		usleep(1000);
	return value_of(cntr, false) == want && !value_of(cntr, true);
}

static int write_unsignaled(struct pair *p)
{
	struct ibv_sge sge = sge_at(p, 0, 100);
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = { (uintptr_t)p->buf + 8192, p->mr->rkey },
	};

	return post(p, 0, wr);
}

static int counted_traffic(struct pair *p)
{
	int i, err = 0;

	for (i = 0; i < SENDS; i++)
		err |= post_recv(p, 1, 65536 + 4096 * i, 4096, i);
	for (i = 0; i < UNSIGNALED; i++)
		err |= write_unsignaled(p);
	for (i = 0; i < WRITES; i++)
		err |= post_op(p, 0, IBV_WR_RDMA_WRITE, 0, 16384, 9000, 0);
	for (i = 0; i < READS; i++)
		err |= post_op(p, 0, IBV_WR_RDMA_READ, 32768, 0, 9000, 0);
	for (i = 0; i < UNCOUNTED; i++)		/* its response has the opcode of a READ response */
		err |= post_op(p, 0, IBV_WR_ATOMIC_WRITE, 32768, 16384, 8, 0);
	for (i = 0; i < SENDS; i++)
		err |= post_op(p, 0, IBV_WR_SEND, 0, 0, 1 + 400 * i, 0);
	for (i = 0; i < WRITES + READS + UNCOUNTED + SENDS; i++)
		err |= status_of(p->scq[0], 20000) != IBV_WC_SUCCESS;
	for (i = 0; i < SENDS; i++)
		err |= status_of(p->rcq[1], 20000) != IBV_WC_SUCCESS;
	return err;
}

/*
 * A WRITE fails. The requests behind it are flushed, those posted in the error state too, and so are the receives of the
 * other QP.
 */
static void count_errors(struct pair *p, struct ibv_comp_cntr *cntr[N_COUNTED])
{
	struct ibv_sge sge = sge_at(p, 0, 8);
	struct ibv_send_wr bad = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)p->buf, p->mr->rkey ^ 0x55 },
	};
	int i, err = post_recv(p, 1, 65536, 64, 0) | post_recv(p, 1, 65536, 64, 1) | post(p, 0, bad);

	for (i = 0; i < 2; i++)
		err |= post_op(p, 0, IBV_WR_SEND, 0, 0, 8, 0);
	for (i = 0; i < 3; i++)
		err |= status_of(p->scq[0], 20000) == IBV_WC_SUCCESS;
	for (i = 0; i < 2; i++)
		err |= post_op(p, 0, IBV_WR_SEND, 0, 0, 8, 0) || status_of(p->scq[0], 20000) != IBV_WC_WR_FLUSH_ERR;
	vt_ok(!err && value_of(cntr[1], true) == 1 && value_of(cntr[0], true) == 4 && value_of(cntr[0], false) == SENDS &&
	      value_of(cntr[1], false) == WRITES + UNSIGNALED,
	      "counters: a failed WRITE and four flushed SENDs count as errors (%llu, %llu)",
	      (unsigned long long)value_of(cntr[1], true), (unsigned long long)value_of(cntr[0], true));
	for (i = 0, err = 0; i < 2; i++)
		err |= status_of(p->rcq[1], 20000) != IBV_WC_WR_FLUSH_ERR;
	vt_ok(!err && value_of(cntr[3], true) == 2 && value_of(cntr[3], false) == SENDS, "counters: so do flushed receives");
}

static void counter_rules(struct vt_dev *d)
{
	struct ibv_comp_cntr_init_attr bytes = { .type = IBV_COMP_CNTR_TYPE_BYTES };
	struct ibv_comp_cntr *one = new_counter(d), *two = new_counter(d);
	struct ibv_comp_cntr_caps caps = { 0 };
	struct pair p;
	int err;

	err = ibv_query_comp_cntr_caps(d->ctx, &caps);
	vt_ok(!err && caps.max_counters && caps.max_value == ~0ull && caps.supported_qp_attach_ops == 0x3f,
	      "counters: capabilities (%u counters)", caps.max_counters);
	vt_ok(!ibv_create_comp_cntr(d->ctx, &bytes) && errno == EOPNOTSUPP, "counters: of bytes are EOPNOTSUPP");
	vt_ok(!ibv_set_comp_cntr(one, 40) && !ibv_inc_comp_cntr(one, 2) && value_of(one, false) == 42 &&
	      !ibv_set_err_comp_cntr(one, ~0ull) && !ibv_inc_err_comp_cntr(one, 1) && value_of(one, true) == 0,
	      "counters: set, increased, and wrapped around");
	pair_create(&p, d, IBV_QPT_RC, 64);
	vt_ok(!attach(p.qp[0], one, IBV_QP_ATTACH_COMP_CNTR_OP_SEND | IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE) &&
	      attach(p.qp[0], two, IBV_QP_ATTACH_COMP_CNTR_OP_SEND) == EBUSY &&
	      !attach(p.qp[0], two, IBV_QP_ATTACH_COMP_CNTR_OP_RECV), "counters: one for each operation of a QP, else EBUSY");
	vt_ok(ibv_destroy_comp_cntr(one) == EBUSY, "counters: EBUSY while attached to a QP");
	pair_connect(&p, IBV_QPT_RC, NULL);
	vt_ok(attach(p.qp[1], one, IBV_QP_ATTACH_COMP_CNTR_OP_RECV) == EINVAL, "counters: EINVAL for a QP in RTS");
	err = ibv_set_comp_cntr(one, 0) | post_recv(&p, 1, 8192, 64, 0) | post_op(&p, 0, IBV_WR_SEND, 0, 0, 8, 0) |
	      post_op(&p, 0, IBV_WR_RDMA_WRITE, 0, 16384, 8, 0);
	err |= status_of(p.scq[0], 20000) != IBV_WC_SUCCESS || status_of(p.scq[0], 20000) != IBV_WC_SUCCESS;
	vt_ok(!err && reaches(one, 2) && value_of(two, false) == 0, "counters: one counts two operations");
	pair_close(&p);
	vt_ok(!ibv_destroy_comp_cntr(one) && !ibv_destroy_comp_cntr(two), "counters: destroyed after the QPs");
}

static void counters(struct vt_dev *d)
{
	struct ibv_comp_cntr *cntr[N_COUNTED];
	struct pair p;
	unsigned int i;
	int err = 0;

	cntr[0] = new_counter(d);
	if (!cntr[0] && absent(errno, "completion counters"))
		return;
	pair_create(&p, d, IBV_QPT_RC, 64);
	for (i = 0; i < N_COUNTED; i++) {
		cntr[i] = i ? new_counter(d) : cntr[0];
		if (!cntr[i])
			vt_die("completion counter: %s", strerror(errno));
		err |= attach(p.qp[counted[i].side], cntr[i], counted[i].op);
	}
	vt_ok(!err, "counters: attached to QPs in RESET");
	pair_connect(&p, IBV_QPT_RC, NULL);
	vt_ok(!counted_traffic(&p), "counters: traffic");
	for (i = 0; i < N_COUNTED; i++)
		vt_ok(reaches(cntr[i], expected[i]), "counters: %s: %llu of %llu", counted[i].name,
		      (unsigned long long)value_of(cntr[i], false), (unsigned long long)expected[i]);
	count_errors(&p, cntr);
	pair_close(&p);
	for (i = 0, err = 0; i < N_COUNTED; i++)
		err |= ibv_destroy_comp_cntr(cntr[i]);
	vt_ok(!err, "counters: destroyed");
	counter_rules(d);
}
#endif

void test_interfaces(struct vt_dev *d)
{
	ece(d);
#ifdef HAVE_ibv_query_port_speed
	port_speed(d);
#endif
#ifdef HAVE_ibv_dm_export_dmabuf_fd
	dm_export(d);
#endif
#ifdef HAVE_ibv_alloc_dmah
	dma_handles(d);
	reg_mr_ex(d);
#endif
#ifdef HAVE_ibv_alloc_buf
	provider_buffer(d);
#endif
#ifdef HAVE_ibv_create_comp_cntr
	counters(d);
#endif
}
