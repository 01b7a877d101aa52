/* SPDX-License-Identifier: GPL-2.0 */
/* The parts of softirq_time; its head comment has the usage. */
#ifndef SOFTIRQ_TIME_H
#define SOFTIRQ_TIME_H

#include "verbs_test.h"

#define RING	32768	/* slots of the largest queue */

struct options {
	const char *dev;	/* RDMA device */
	const char *to;		/* address to ping */
	const char *kind;	/* of the attack */
	int n;			/* QPs, or contexts */
	int seconds;
};

struct ibv_qp *make_qp(struct vt_dev *d, enum ibv_qp_type type, struct ibv_cq *cq, struct ibv_srq *srq, int slots);
int set_state(struct ibv_qp *qp, enum ibv_qp_state state);	/* errno */
void bind_to(int cpu);	/* this thread */

int attack(const struct options *opt);	/* softirq_attack.c */
int watch(const struct options *opt);	/* softirq_watch.c */

#endif
