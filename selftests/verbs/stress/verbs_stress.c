// SPDX-License-Identifier: GPL-2.0
/*
 * Two sides execute all kinds of operations and compare every byte. Both derive all operations from one seed, so each
 * knows the peer's operations and their result, including that nothing else was written. It does not measure.
 *
 *	verbs_stress -d DEV					the passive side; the active one sends its settings
 *	verbs_stress -d DEV -c HOST [options]			the active side
 *	  -t rc|uc|ud  -q QPS  -n BATCHES  -w OPS_PER_BATCH  -l MAX_LEN  -s SEED  -o OP,OP,...
 *	  -S use an SRQ  -e sleep in completion channels  -r post receives late (RNR)  -L losses, but not of all messages, are allowed
 *	  (UC, UD)  -B both sides send at once  -z no message is empty
 *	both:  -x for rxe: no ibv_wr_*(), whose lists its provider miscounts in rdma-core 44; its WITH_INV is the kernel's bit
 *	  -O on-demand memory, where the device has it
 *	  -6 IPv6 GID  -g GID_INDEX  -m PATH_MTU  -p TCP_PORT  -k ACK_TIMEOUT_CODE  -T SECONDS  -v
 * Exits 0, 1 or 4 (pass, fail, skip).
 */
#define _GNU_SOURCE
#include "stress_side.h"

#include <arpa/inet.h>
#include <byteswap.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

bool verbose, rxe_slips;
static uint8_t ack_timeout = 14;
static int on_demand;		/* access flag of all memory, or 0 */

static const struct side *watched;

static void on_alarm(int sig)
{
	(void)sig;
	if (watched)
		dprintf(2, "batch %u: %u sends and %u messages not completed, next is op %u of %u\n", watched->batch_nr,
			watched->left_out, watched->left_in, watched->next_out[0], watched->c.batch);
	dprintf(2, "FAIL: out of time\n");
	_exit(VT_FAIL);
}

static uint8_t *area(struct side *s, struct ibv_mr **mr, int access)
{
	size_t len = slot_size(&s->c) * s->c.batch;
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		vt_die("mmap of %zu", len);
	*mr = ibv_reg_mr(s->dev.pd, p, len, access | on_demand);
	if (!*mr)
		vt_die("reg_mr: %s", strerror(errno));
	return p;
}

static struct ibv_qp *make_qp(struct side *s)
{
	uint32_t depth = s->c.batch / s->c.nr_qps;
	struct ibv_qp_init_attr_ex a = {
		.send_cq = s->scq, .recv_cq = s->rcq, .srq = s->srq, .qp_type = s->c.type, .pd = s->dev.pd,
		.cap = { .max_send_wr = depth + 1, .max_recv_wr = s->srq ? 0 : depth, .max_send_sge = MAX_SGE,
			 .max_recv_sge = s->srq ? 0 : MAX_SGE, .max_inline_data = 96 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	};
	uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	struct ibv_qp *qp;

	if (s->c.type != IBV_QPT_UD)
		ops |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	if (s->c.type == IBV_QPT_RC)
		ops |= IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV;
	a.send_ops_flags = ops | (s->c.ops & 1u << OP_ATOMIC_WRITE ? IBV_QP_EX_WITH_ATOMIC_WRITE : 0);
	s->has_ex = true;
	qp = ibv_create_qp_ex(s->dev.ctx, &a);
	if (!qp && (errno == EOPNOTSUPP || errno == ENOTSUP || errno == ENOSYS || errno == EINVAL)) {
		a.comp_mask = IBV_QP_INIT_ATTR_PD;
		s->has_ex = false;
		qp = ibv_create_qp_ex(s->dev.ctx, &a);
	}
	if (!qp)
		vt_die("create_qp: %s", strerror(errno));
	s->max_inline = a.cap.max_inline_data;
	return qp;
}

/* Probes the device: ATOMIC_WRITE by creating a QP, memory windows by the capability. */
static uint32_t my_ops(struct side *s)
{
	uint32_t ops = (1 << NR_OPS) - 1;
	struct ibv_cq *cq = ibv_create_cq(s->dev.ctx, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex a = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .pd = s->dev.pd,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE,
	};
	struct ibv_qp *qp = cq ? ibv_create_qp_ex(s->dev.ctx, &a) : NULL;

	if (!cq)
		vt_die("create_cq: %s", strerror(errno));
	if (qp)
		ibv_destroy_qp(qp);
	else
		ops &= ~(1u << OP_ATOMIC_WRITE);
	ibv_destroy_cq(cq);
	if (!(s->dev.attr.orig_attr.device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)))
		ops &= ~(1u << OP_SEND_INV);
	if (on_demand)		/* a window cannot be bound to such a region */
		ops &= ~(1u << OP_SEND_INV);
	if (s->dev.attr.orig_attr.atomic_cap == IBV_ATOMIC_NONE)
		ops &= ~(1u << OP_CAS | 1u << OP_FAA);
	return ops;
}

void swap_words(const struct side *s, uint32_t *w, uint32_t n)
{
	while (s->swapped && n--)
		w[n] = bswap_32(w[n]);
}

static void agree(struct side *s)
{
	struct { struct cfg c; uint32_t magic, ops, mtu, pad; } me, peer;
	uint32_t type_ops[] = {
		[IBV_QPT_RC] = ~0u,
		[IBV_QPT_UC] = 1 << OP_SEND | 1 << OP_SEND_IMM | 1 << OP_WRITE | 1 << OP_WRITE_IMM,
		[IBV_QPT_UD] = 1 << OP_SEND | 1 << OP_SEND_IMM,
	};

	memset(&me, 0, sizeof(me));
	me.magic = 0x73747234;
	me.ops = my_ops(s);
	me.mtu = 128u << s->dev.mtu;
	me.c = s->c;
	vt_send(s->fd, &me, sizeof(me));
	vt_recv(s->fd, &peer, sizeof(peer));
	s->swapped = peer.magic == bswap_32(me.magic);
	swap_words(s, &peer.c.type, (sizeof(peer) - offsetof(struct cfg, type)) / sizeof(uint32_t));
	if (s->swapped)
		peer.c.seed = bswap_64(peer.c.seed);
	if (peer.magic != me.magic)
		vt_die("the peer is another program");
	if (!s->active)
		s->c = peer.c;
	s->c.ops &= me.ops & peer.ops;
	s->c.mtu = me.mtu < peer.mtu ? me.mtu : peer.mtu;
	s->c.ops &= type_ops[s->c.type];
	if (s->c.type == IBV_QPT_UD && s->c.max_len > s->c.mtu)
		s->c.max_len = s->c.mtu;
	if (!s->c.ops)
		vt_skip("no operation left that both sides and the QP type support");
	if (!s->c.nr_qps || s->c.nr_qps > MAX_QPS || s->c.batch > MAX_BATCH || s->c.batch % s->c.nr_qps)
		vt_die("need 1..%d QPs and a batch of at most %d that they divide", MAX_QPS, MAX_BATCH);
}

static void setup(struct side *s)
{
	struct vt_conn conn = {
		.type = s->c.type, .psn = vt_mix(s->c.seed + s->active) & 0xffffff, .timeout = ack_timeout,
		.retry = 7, .rnr_retry = 7, .min_rnr_timer = 5,
		.access = s->c.type == IBV_QPT_RC ? ACCESS : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	};
	struct { uint64_t addr; uint32_t rkey, pad; } me = { 0 }, peer;
	struct vt_addr addr = { .gid = s->dev.gid, .psn = conn.psn, .mtu = s->dev.mtu };
	uint32_t i;
	int err;

	if (s->c.events)
		s->chan = ibv_create_comp_channel(s->dev.ctx);
	s->scq = ibv_create_cq(s->dev.ctx, s->c.batch + MAX_QPS, NULL, s->chan, 0);
	s->rcq = ibv_create_cq(s->dev.ctx, s->c.batch + MAX_QPS, NULL, s->chan, 0);
	if (!s->scq || !s->rcq || (s->c.events && !s->chan))
		vt_die("create_cq: %s", strerror(errno));
	if (s->c.srq) {
		struct ibv_srq_init_attr a = { .attr = { .max_wr = s->c.batch, .max_sge = MAX_SGE } };

		s->srq = ibv_create_srq(s->dev.pd, &a);
		if (!s->srq)
			vt_die("create_srq: %s", strerror(errno));
	}
	s->local = area(s, &s->local_mr, IBV_ACCESS_LOCAL_WRITE);
	s->recvs = area(s, &s->recv_mr, IBV_ACCESS_LOCAL_WRITE);
	s->target = area(s, &s->target_mr, ACCESS);
	me.addr = (uintptr_t)s->target;
	me.rkey = s->target_mr->rkey;
	vt_send(s->fd, &me, sizeof(me));
	vt_recv(s->fd, &peer, sizeof(peer));
	s->remote = s->swapped ? bswap_64(peer.addr) : peer.addr;
	s->rkey = s->swapped ? bswap_32(peer.rkey) : peer.rkey;
	for (i = 0; i < s->c.nr_qps; i++) {
		s->qp[i] = make_qp(s);
		addr.qpn = s->qp[i]->qp_num;
		vt_send(s->fd, &addr, sizeof(addr));
		vt_recv(s->fd, &s->peer[i], sizeof(addr));
		swap_words(s, &s->peer[i].qpn, 3);
		err = vt_qp_init(s->qp[i], &conn);
		if (!err)
			err = vt_qp_connect(&s->dev, s->qp[i], &conn, &s->peer[i]);
		if (err)
			vt_die("cannot connect a QP: %s", strerror(err));
		if (s->c.type == IBV_QPT_UD) {
			s->ah[i] = vt_ah(&s->dev, &s->peer[i]);
			if (!s->ah[i])
				vt_die("create_ah: %s", strerror(errno));
		}
	}
	for (i = 0; i < s->c.batch && s->c.ops & 1u << OP_SEND_INV; i++) {
		s->mw[i] = ibv_alloc_mw(s->dev.pd, IBV_MW_TYPE_2);
		if (!s->mw[i])
			vt_die("alloc_mw: %s", strerror(errno));
	}
}

/* ---- the initiating side ---- */

static struct place place_of(struct side *s, uint32_t i)
{
	uint32_t q = i % s->c.nr_qps;

	return (struct place) {
		.local = slot(s, s->local, i), .lkey = s->local_mr->lkey, .remote = s->remote + slot_size(&s->c) * i,
		.rkey = s->rkey, .inv_rkey = s->inv_rkey[i], .ah = s->ah[q], .remote_qpn = s->peer[q].qpn,
		.max_inline = s->max_inline,
	};
}

static void post_list(struct ibv_qp *qp, struct request *first, struct request **last)
{
	struct ibv_send_wr *bad;
	int err;

	if (!*last)
		return;
	(*last)->wr.next = NULL;
	*last = NULL;
	err = ibv_post_send(qp, &first->wr, &bad);
	if (err)
		vt_die("post_send of %llu: %s", (unsigned long long)bad->wr_id, strerror(err));
}

/* Posts runs of requests as one list; requests for ibv_wr_*() are posted one by one in between. */
static void post_batch(struct side *s, uint32_t q)
{
	static struct request reqs[MAX_BATCH];
	struct request *last = NULL, *first = NULL;
	uint32_t i;
	int err;

	for (i = q; i < s->c.batch; i += s->c.nr_qps) {
		struct plan *p = &s->out[i];
		struct place at = place_of(s, i);

		plan_fill_local(p, &at);
		plan_request(p, &at, i, i + s->c.nr_qps >= s->c.batch, &reqs[i]);
		p->signaled = reqs[i].wr.send_flags & IBV_SEND_SIGNALED;
		s->left_out += p->signaled;
		if (s->has_ex && (rxe_slips ? p->op == OP_ATOMIC_WRITE : p->use_ex)) {
			post_list(s->qp[q], first, &last);
			err = post_ex(ibv_qp_to_qp_ex(s->qp[q]), p, &reqs[i]);
			if (err)
				vt_die("ibv_wr_complete of %s: %s", op_name[p->op], strerror(err));
			continue;
		}
		if (last)
			last->wr.next = &reqs[i].wr;
		else
			first = &reqs[i];
		last = &reqs[i];
	}
	post_list(s->qp[q], first, &last);
}

static void judge_sent(struct side *s, const struct ibv_wc *wc)
{
	uint32_t i = wc->wr_id, q, want;

	if (i >= s->c.batch)
		vt_die("a send completion with wr_id %u", i);
	if (wc->status)
		vt_die("batch %u op %u (%s, %u bytes in %u pieces) failed: %s (vendor %u)", s->batch_nr, i,
		       op_name[s->out[i].op], s->out[i].len, s->out[i].nr_sge, ibv_wc_status_str(wc->status),
		       wc->vendor_err);
	q = qp_index(s, wc->qp_num);
	for (want = s->next_out[q]; want < s->c.batch && !s->out[want].signaled; want += s->c.nr_qps)
		;
	if (want != i)
		vt_die("batch %u: completion of op %u where %u was expected", s->batch_nr, i, want);
	if (wc->opcode != plan_wc_opcode(&s->out[i]))
		vt_die("op %u (%s) completed as opcode %d", i, op_name[s->out[i].op], wc->opcode);
	s->next_out[q] = i + s->c.nr_qps;
	s->left_out--;
}

static void source_finish(struct side *s)
{
	uint32_t i;

	for (i = 0; i < s->c.batch && (s->active || s->c.both); i++) {
		struct place at = place_of(s, i);
		const char *why = plan_check_local(&s->out[i], &at);

		if (why)
			vt_die("batch %u op %u (%s, %u bytes): %s", s->batch_nr, i, op_name[s->out[i].op],
			       s->out[i].len, why);
		s->done[s->out[i].op] += !op_takes_recv(s->out[i].op);
	}
}

/* ---- the sequence ---- */

static void sleep_for_event(struct side *s)
{
	struct pollfd p = { .fd = s->chan->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *ctx;

	if (poll(&p, 1, 200) <= 0)
		return;
	if (ibv_get_cq_event(s->chan, &cq, &ctx))
		vt_die("get_cq_event: %s", strerror(errno));
	ibv_ack_cq_events(cq, 1);
}

static bool progress(struct side *s)
{
	struct ibv_wc wc;
	bool any = false;

	while (ibv_poll_cq(s->scq, 1, &wc) > 0) {
		judge_sent(s, &wc);
		any = true;
	}
	while (ibv_poll_cq(s->rcq, 1, &wc) > 0) {
		judge_recv(s, &wc);
		any = true;
	}
	return any;
}

#define QUIET_MS	150
#define QUIET_TURNS	50	/* polls without a message; counts polls, not time, as the machine may stall */

/* Serves incoming messages until the peer's byte says that its sends have completed, and ours have, too. */
static void serve(struct side *s)
{
	bool told = false, peer_done = false, loss = s->c.lossy && s->c.type != IBV_QPT_RC;
	uint64_t quiet = vt_now_ms();
	unsigned int turns = 0;
	ssize_t got;
	char b = 'd';

	for (;;) {
		if (s->chan && (ibv_req_notify_cq(s->scq, 0) || ibv_req_notify_cq(s->rcq, 0)))
			vt_die("req_notify_cq");
		if (progress(s)) {
			quiet = vt_now_ms();
			turns = 0;
			continue;
		}
		turns++;
		if (!s->left_out && !told) {
			vt_send(s->fd, &b, 1);
			told = true;
		}
		got = peer_done ? -1 : recv(s->fd, &b, 1, MSG_DONTWAIT);
		if (!got)
			vt_die("the peer gave up");
		if (got == 1) {
			peer_done = true;
			quiet = vt_now_ms();
			turns = 0;
		}
		if (told && peer_done && (loss ? turns > QUIET_TURNS && vt_now_ms() - quiet > QUIET_MS : !s->left_in))
			return;
		if (s->chan && (s->left_out || s->left_in))
			sleep_for_event(s);
		else
			usleep(50);
	}
}

static void run_batch(struct side *s)
{
	bool sends = s->active || s->c.both, takes = !s->active || s->c.both;
	char b = 'b';
	uint32_t i;

	memset(s->next_out, 0, sizeof(s->next_out));
	for (i = 0; i < s->c.nr_qps; i++)
		s->next_out[i] = i;
	target_prepare(s);
	s->left_out = 0;
	for (i = 0; i < s->c.batch && sends; i++) {
		s->out[i] = make_plan(&s->c, s->active, s->batch_nr, i);
		s->out[i].swapped = s->swapped;
	}
	for (i = 0; i < s->c.nr_qps && sends; i++)
		post_batch(s, i);
	if (s->c.late_recv && takes) {
		usleep(10000);
		top_up(s);
	}
	serve(s);
	target_finish(s);
	source_finish(s);
	/* Neither side writes the peer's memory again before both have checked theirs. */
	vt_send(s->fd, &b, 1);
	vt_recv(s->fd, &b, 1);
}

static void teardown(struct side *s)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < s->c.nr_qps; i++) {
		err |= s->ah[i] ? ibv_destroy_ah(s->ah[i]) : 0;
		err |= ibv_destroy_qp(s->qp[i]);
	}
	for (i = 0; i < s->c.batch; i++)
		err |= s->mw[i] ? ibv_dealloc_mw(s->mw[i]) : 0;
	err |= s->srq ? ibv_destroy_srq(s->srq) : 0;
	err |= ibv_destroy_cq(s->scq) | ibv_destroy_cq(s->rcq);
	err |= s->chan ? ibv_destroy_comp_channel(s->chan) : 0;
	err |= ibv_dereg_mr(s->local_mr) | ibv_dereg_mr(s->target_mr) | ibv_dereg_mr(s->recv_mr);
	if (err)
		vt_die("an object could not be destroyed: %s", strerror(err));
	vt_close(&s->dev);
}

static uint32_t parse_ops(char *list)
{
	uint32_t ops = 0, i;
	char *w;

	for (w = strtok(list, ","); w; w = strtok(NULL, ",")) {
		for (i = 0; i < NR_OPS && strcasecmp(w, op_name[i]); i++)
			;
		if (i == NR_OPS)
			vt_die("no operation %s", w);
		ops |= 1u << i;
	}
	return ops;
}

static void report(struct side *s)
{
	int i;

	printf("%s: %u batches of %u", s->active ? "active" : "passive", s->c.nr_batches, s->c.batch);
	for (i = 0; i < NR_OPS; i++)
		if (s->done[i])
			printf(" %s=%llu", op_name[i], (unsigned long long)s->done[i]);
	printf(" judged=%llu bytes=%llu", (unsigned long long)s->judged, (unsigned long long)s->judged_bytes);
	printf(s->c.lossy ? " lost=%llu\n" : "\n", (unsigned long long)s->lost);
}

int main(int argc, char **argv)
{
	static struct side s = {
		.c = { .seed = 1, .type = IBV_QPT_RC, .nr_qps = 1, .batch = 32, .nr_batches = 10, .max_len = 65536,
		       .ops = ~0u },
	};
	const char *dev = NULL, *host = NULL;
	int o, port = 18515, gid = -1, mtu = 0;
	bool v6 = false;

	signal(SIGALRM, on_alarm);
	signal(SIGPIPE, SIG_IGN);
	alarm(120);
	while ((o = getopt(argc, argv, "d:c:t:q:n:w:l:s:o:SerLBzO6g:m:p:k:T:vx")) != -1) {
		switch (o) {
		case 'd': dev = optarg; break;
		case 'c': host = optarg; break;
		case 't': s.c.type = !strcmp(optarg, "ud") ? IBV_QPT_UD : !strcmp(optarg, "uc") ? IBV_QPT_UC : IBV_QPT_RC; break;
		case 'q': s.c.nr_qps = atoi(optarg); break;
		case 'n': s.c.nr_batches = atoi(optarg); break;
		case 'w': s.c.batch = atoi(optarg); break;
		case 'l': s.c.max_len = atoi(optarg); break;
		case 's': s.c.seed = strtoull(optarg, NULL, 0); break;
		case 'o': s.c.ops = parse_ops(optarg); break;
		case 'S': s.c.srq = 1; break;
		case 'e': s.c.events = 1; break;
		case 'r': s.c.late_recv = 1; break;
		case 'L': s.c.lossy = 1; break;
		case 'B': s.c.both = 1; break;
		case 'z': s.c.never_empty = 1; break;
		case 'O': on_demand = IBV_ACCESS_ON_DEMAND; break;
		case '6': v6 = true; break;
		case 'g': gid = atoi(optarg); break;
		case 'm': mtu = atoi(optarg); break;
		case 'p': port = atoi(optarg); break;
		case 'k': ack_timeout = atoi(optarg); break;
		case 'T': alarm(atoi(optarg)); break;
		case 'x': rxe_slips = true; break;
		case 'v': verbose = true; break;
		default: return 2;
		}
	}
	s.active = host;
	vt_open(&s.dev, dev, v6, gid, mtu);
	s.fd = host ? vt_connect(host, port) : vt_listen_accept(port);
	watched = &s;
	agree(&s);
	setup(&s);
	for (; s.batch_nr < s.c.nr_batches; s.batch_nr++) {
		run_batch(&s);
		if (verbose)
			fprintf(stderr, "batch %u done\n", s.batch_nr);
	}
	teardown(&s);
	if (s.expected && s.lost == s.expected)
		vt_die("all %llu messages were lost", (unsigned long long)s.lost);
	report(&s);
	return VT_PASS;
}
