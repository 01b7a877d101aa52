/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the parts of features: a pair of connected QPs in one process, and functions to use it. */
#ifndef FEATURES_H
#define FEATURES_H

#include <unistd.h>
#include "../verbs_test.h"

#define BUF	262144
#define PAGE	((size_t)getpagesize())
#define RIGHTS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
		 IBV_ACCESS_MW_BIND)
#define NO_COMPLETION	((enum ibv_wc_status)1000)

/* Values of enum ibv_access_flags and ib_uverbs_device_cap_flags, which older headers lack. */
#define ACCESS_FLUSH_GLOBAL	(1u << 8)
#define CAP_FLUSH_GLOBAL	(1ull << 38)

extern bool wire_loses;			/* UC and UD messages may get lost */
extern const char *slow_device;		/* a block device that takes 500 ms for a page; NULL: none */
extern const char *slowish_device;	/* the same, 20 ms */

extern const char *second_device;	/* another device of this program's namespace; NULL: none */
extern bool newest_kernel;		/* it has every interface that is tested */

struct pair {
	struct vt_dev *d;
	uint8_t *buf;			/* BUF bytes, used by both sides */
	struct ibv_mr *mr;
	struct ibv_comp_channel *chan;	/* of all four CQs */
	struct ibv_cq *scq[2], *rcq[2];
	struct ibv_qp *qp[2];
};

/* @conn: NULL for long timeouts; its type, PSN and access are set here. */
void pair_open(struct pair *p, struct vt_dev *d, enum ibv_qp_type type, int cqe, const struct vt_conn *conn);
/* The two halves of pair_open(). */
void pair_create(struct pair *p, struct vt_dev *d, enum ibv_qp_type type, int cqe);
void pair_connect(struct pair *p, enum ibv_qp_type type, const struct vt_conn *conn);
/* RC; the second receives from @srq. */
void pair_open_srq(struct pair *p, struct vt_dev *d, int cqe, struct ibv_srq *srq);
void pair_close(struct pair *p);
struct ibv_sge sge_at(struct pair *p, size_t off, uint32_t len);
int post(struct pair *p, int side, struct ibv_send_wr wr);
int post_op(struct pair *p, int side, enum ibv_wr_opcode op, size_t local, size_t remote, uint32_t len, unsigned int flags);
int post_recv(struct pair *p, int side, size_t off, uint32_t len, uint64_t id);
enum ibv_wc_status status_of(struct ibv_cq *cq, int ms);
/* 16 bytes at @off; @ah: the QPs are UD QPs. */
int send_to_peer(struct pair *p, int side, struct ibv_ah *ah, size_t off);
bool refused_by_peer(enum ibv_wc_status got, enum ibv_wc_status want);
enum ibv_qp_state state_of(struct ibv_qp *qp);
bool readable(int fd, int ms);	/* within that time */
int async_event(struct ibv_context *ctx, int ms);

/* Memory that is registered on demand. features_odp.c */
struct absent {
	uint8_t *mem;		/* no page of it is mapped at first */
	size_t len;
	struct ibv_mr *mr;
};

#define RESIDENT_MAX	(16 << 20)

void absent_map(struct absent *a, size_t len, int flags, int fd);
bool absent_register(struct absent *a, struct vt_dev *d);
void absent_close(struct absent *a);
/* Maps and registers a part of the device, of which no page is in the page cache. */
bool slow_open(struct absent *a, struct vt_dev *d, const char *device);
/* An operation between the start of the pair's memory and @off in @a. */
enum ibv_wc_status by_peer_on(struct pair *p, const struct absent *a, enum ibv_wr_opcode op, size_t off, uint32_t len);
int resident(uint8_t *mem, size_t len);	/* pages of at most RESIDENT_MAX bytes */

void test_errors(struct vt_dev *d);	/* features_errors.c */
void test_error_order(struct vt_dev *d);	/* features_error_order.c */
void test_write_order(struct vt_dev *d);	/* features_write_order.c */
void test_rules(struct vt_dev *d);	/* features_rules.c */
void test_reuse(struct vt_dev *d);	/* features_reuse.c */
void test_overwrite(struct vt_dev *d);	/* a part of it, for links that lose packets */
void test_paging(struct vt_dev *d);	/* features_odp.c */
void test_odp_resend(struct vt_dev *d);	/* features_odp_resend.c; called by test_paging() */
void test_reclaim(struct vt_dev *d);	/* features_reclaim.c */
void test_rate(struct vt_dev *d);	/* features_rate.c */
void test_regions(struct vt_dev *d);	/* features_regions.c */
void test_srq(struct vt_dev *d);		/* features_srq.c */
void test_share(struct vt_dev *d);	/* features_share.c */
void test_interfaces(struct vt_dev *d);	/* features_interfaces.c */

#endif
