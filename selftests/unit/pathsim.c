// SPDX-License-Identifier: GPL-2.0
/*
 * Simulator of queue pairs over several links: requesters and responders of kernel/core/transport, each QP with 16 WRITEs
 * or READs of 64 KiB under way, and links with a rate in each direction, a FIFO queue and perhaps losses. A hash of QP and path, as
 * of UDP ports, selects the link (ECMP). Prints the goodput of each QP. Time is virtual, and the seed determines
 * everything.
 *
 *   pathsim [-p PATHS] [-q QPS] [-t MILLISECONDS] [-w MILLISECONDS] [-m PATH_MTU] [-s SEED] [-i] [-l PER_CENT] [-f PER_CENT] [-r MOST]
 *           [-e one|several] [-R] [-v] LINK...
 *   -p 0: each QP finds out itself; -w: the goodput of the time before does not count; -i: each QP has something to send for
 *   2 to 20 ms, then nothing for as long, and so on
 *   LINK: GBPS[,loss=PER_CENT][,reorder=PER_CENT][,early=PER_CENT][,down=MS[-MS]][,us=DELAY][,queue=KB]
 *   reorder: these packets arrive 20 us earlier than others; early: they enter the link's queue so much earlier
 *   -l: fails if the goodput is less than that part of the links' rates; -f: if that of a QP is less than that part of the mean; -r: if more packets are sent again than MOST
 *   for each lost one; -e: with -p 0: if a QP ever chose several paths, or one does not use them in the end; -R: READs; -v: prints each millisecond of the first QP; -v -v: also its paths
 */
#include <getopt.h>
#include "core/transport/requester.h"
#include "core/transport/responder.h"

#define MSG		65536
#define DEPTH		16
#define QUEUE		32	/* work slots, a power of two */
#define KEPT		ROAN_EARLY_WINDOW
#define MAX_LINKS	64
#define MAX_QPS		64
#define MAX_EVENTS	(1 << 16)
#define MS		1000000ull	/* ns */
#define OVERHEAD	(14 + 20 + 8 + 4)
#define OVERTAKEN_NS	20000

struct link {
	double gbps, loss, reorder, early;
	u32 queue;		/* bytes; 0: no limit */
	u64 delay, down_from, down_to;
	u64 entered_at[2];	/* by the last one that was not early */
	u64 free_at[2];		/* of requests, of responses */
};

struct event {
	u64 at;
	u32 qp;
	u32 path, len;
	bool response;
	bool enters;		/* the link's queue; else it arrives */
	struct roan_pkt pkt;
};

struct qp {
	struct roan_requester req;
	struct roan_responder resp;
	struct roan_tx_wqe work[QUEUE];
	struct roan_holes holes;
	struct roan_paths paths;
	struct roan_resp_res resp_res[DEPTH];
	struct roan_auto_paths auto_paths;
	struct roan_early_set early_set;
	struct roan_pkt kept[KEPT];
	bool is_kept[KEPT];
	u32 last_path;		/* by which a request arrived */
	u32 posted, retired, retired_before;
	bool idle;
	u64 idle_changes_at;
	bool chose_several;
};

static struct link links[MAX_LINKS];
static struct qp qps[MAX_QPS];
static struct event events[MAX_EVENTS];
static u32 n_links, n_qps = 1, n_events, n_paths = 32, mtu_shift = 12, verbose, salt;
static bool intermittent;
static struct roan_min_rtt min_rtt;	/* the QPs have the same peer */
static u64 now = 1000, lost, seed = 1;
static bool reads;

static u32 draw(u32 n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 20) % n;
}

/* ---- events: a binary heap ---- */

static void event_add(struct event e)
{
	u32 i = n_events++;

	if (n_events > MAX_EVENTS) {
		printf("not ok: too many packets in flight\n");
		exit(1);
	}
	for (; i && events[(i - 1) / 2].at > e.at; i = (i - 1) / 2)
		events[i] = events[(i - 1) / 2];
	events[i] = e;
}

static struct event event_take(void)
{
	struct event first = events[0], e = events[--n_events];
	u32 i = 0, k;

	for (; (k = 2 * i + 1) < n_events; i = k) {
		k += k + 1 < n_events && events[k + 1].at < events[k].at;
		if (events[k].at >= e.at)
			break;
		events[i] = events[k];
	}
	events[i] = e;
	return first;
}

/* ---- the network ---- */

static struct link *link_of(u32 qp, u32 path)
{
	u32 x = (salt + qp * 64 + path) * 0x9e3779b1u;

	x ^= x >> 15;
	x *= 0x85ebca6bu;
	x ^= x >> 13;
	return &links[x % n_links];
}

static void data_enters(u32 qp, u32 path, bool response, const struct roan_pkt *pkt, u32 len)
{
	struct link *l = link_of(qp, path);
	u64 ns = (len + OVERHEAD + roan_opcode(pkt->opcode)->header_len) * 8 / l->gbps, late = 0;

	if (l->queue && l->free_at[response] > now && (l->free_at[response] - now) * l->gbps / 8 > l->queue) {
		lost++;
		return;
	}
	l->free_at[response] = max(l->free_at[response], now) + ns;
	if ((now >= l->down_from && now < l->down_to) || draw(1000000) < l->loss * 10000) {
		lost++;
		return;
	}
	if (l->reorder && draw(1000000) >= l->reorder * 10000)
		late = OVERTAKEN_NS;
	event_add((struct event) { .at = l->free_at[response] + l->delay + late, .qp = qp, .response = response, .pkt = *pkt });
}

static void data_leaves(u32 qp, u32 path, bool response, const struct roan_pkt *pkt, u32 len)
{
	struct link *l = link_of(qp, path);

	if (!l->early || draw(1000000) < l->early * 10000)
		return data_enters(qp, path, response, pkt, len);
	l->entered_at[response] = max(l->entered_at[response] + 1, now + OVERTAKEN_NS);
	event_add((struct event) {
		.at = l->entered_at[response], .enters = true, .qp = qp, .path = path, .response = response, .len = len, .pkt = *pkt,
	});
}

/* ACKs are small, and not lost. They wait behind responses to READs. */
static void ack_leaves(u32 qp, u32 path, const struct roan_pkt *pkt)
{
	struct link *l = link_of(qp, path);

	event_add((struct event) { .at = max(l->free_at[1], now) + 1 + links[0].delay, .qp = qp, .response = true, .pkt = *pkt });
}

/* ---- the hosts ---- */

static void qp_init(struct qp *qp)
{
	const struct roan_requester_cfg req = {
		.transport = ROAN_TP_RC, .mtu_shift = mtu_shift, .retry_cnt = 7, .rnr_retry = 7, .timeout = 14,
		.psn_window = 256, .max_rd_atomic = DEPTH, .sack = true, .sq_psn = draw(1 << 24),
	};
	const struct roan_responder_cfg resp = {
		.transport = ROAN_TP_RC, .mtu_shift = mtu_shift, .rq_psn = req.sq_psn, .max_dest_rd_atomic = DEPTH, .sack = true,
	};

	qp->req.work = qp->work;
	qp->req.mask = QUEUE - 1;
	qp->req.holes = &qp->holes;
	qp->paths.n = n_paths;
	qp->req.min_rtt = &min_rtt;
	qp->req.paths = n_paths > 1 ? &qp->paths : NULL;
	qp->req.auto_paths = n_paths ? NULL : &qp->auto_paths;
	roan_requester_reset(&qp->req, &req);
	qp->resp.early_set = &qp->early_set;
	roan_responder_reset(&qp->resp, &resp);
	roan_responder_set_resources(&qp->resp, qp->resp_res, DEPTH);
	qp->resp.cfg.max_dest_rd_atomic = DEPTH;
}

static void respond(struct qp *qp)
{
	struct roan_response a;

	while (roan_responder_next(&qp->resp, ROAN_AETH_UNLIMITED, &a)) {
		struct roan_pkt pkt = {
			.opcode = a.opcode, .info = roan_opcode(a.opcode), .psn = a.psn, .syndrome = a.syndrome, .msn = a.msn,
			.ext_version = ROAN_EXT_VERSION, .payload_len = a.len,
		};

		if (a.opcode == ROAN_OPCODE_SACK)
			roan_responder_fill_sack(&qp->resp, &pkt.sack);
		if (pkt.info->op == ROAN_OP_READ_RESP)
			data_leaves(qp - qps, a.sport - 1, true, &pkt, a.len);
		else
			ack_leaves(qp - qps, qp->last_path, &pkt);
		roan_responder_sent(&qp->resp, &a);
	}
}

static void execute(struct qp *qp, const struct roan_pkt *pkt)
{
	if (pkt->info->op == ROAN_OP_READ)
		roan_responder_done_op(&qp->resp, pkt, 0);
	else
		roan_responder_done(&qp->resp, pkt);
}

static void execute_kept(struct qp *qp)
{
	struct roan_request exec;
	bool ran = false;
	u32 at;

	for (; qp->is_kept[at = qp->resp.epsn % KEPT]; ran = true) {
		qp->is_kept[at] = false;
		if (roan_responder_admit(&qp->resp, &qp->kept[at], &exec) == ROAN_V_EXECUTE)
			execute(qp, &qp->kept[at]);
	}
	if (ran)
		roan_responder_next_gap(&qp->resp, true, now, now);
}

static void request_arrives(struct qp *qp, const struct roan_pkt *pkt)
{
	struct roan_request exec;
	enum roan_verdict verdict = roan_responder_admit(&qp->resp, pkt, &exec);

	qp->last_path = pkt->sport - 1;
	switch (verdict) {
	case ROAN_V_EXECUTE:
		execute(qp, pkt);
		execute_kept(qp);
		break;
	case ROAN_V_GAP:
	case ROAN_V_EARLY:
		if (!qp->is_kept[pkt->psn % KEPT] && roan_responder_may_keep(&qp->resp, pkt)) {
			qp->is_kept[pkt->psn % KEPT] = true;
			qp->kept[pkt->psn % KEPT] = *pkt;
			roan_responder_kept(&qp->resp, pkt);
		}
		if (verdict == ROAN_V_GAP)
			roan_responder_gap(&qp->resp, now);
		break;
	case ROAN_V_DUPLICATE:
		roan_responder_duplicate(&qp->resp, pkt, now);
		break;
	default:
		break;
	}
	respond(qp);
}

static void post(struct qp *qp)
{
	enum roan_status status;
	u32 index;

	while (roan_requester_retired(&qp->req, &index, &status)) {
		if (status != ROAN_ST_SUCCESS) {
			printf("not ok: QP %td: status %u\n", qp - qps, status);
			exit(1);
		}
		qp->retired++;
	}
	for (; qp->posted - qp->retired < DEPTH && !qp->idle; qp->posted++) {
		*roan_requester_slot(&qp->req, &index) = (struct roan_tx_wqe) { .op = reads ? ROAN_OP_READ : ROAN_OP_WRITE, .len = MSG };
		roan_requester_queued(&qp->req);
	}
}

static void send_all(struct qp *qp)
{
	struct roan_tx_desc d;
	u32 i, n;

	post(qp);
	while (roan_requester_next(&qp->req, now, &d) == ROAN_NEXT_PACKET) {
		struct roan_pkt pkt = {
			.opcode = d.opcode, .info = roan_opcode(d.opcode), .ackreq = d.ackreq, .copy = d.copy,
			.ext_version = ROAN_EXT_VERSION, .dma_len = reads ? d.len : MSG,
			.payload_len = reads ? 0 : d.len, .sport = d.path + 1, .va = d.offset,
		};

		n = 1 + roan_requester_batch_count(&qp->req, &d, 15);
		for (i = 0; i < n; i++) {
			pkt.psn = psn_add(d.psn, i);
			data_leaves(qp - qps, d.path, false, &pkt, pkt.payload_len);
		}
		d.npsn += n - 1;
		roan_requester_sent(&qp->req, &d, now);
	}
}

static void show_paths(const struct qp *qp)
{
	printf("%llu us: window %u, in flight %u, rtt %u us, shortest %u us\n", (unsigned long long)now / 1000, (reads ? qp->paths.read_window : qp->paths.window).size / 256,
	       reads ? qp->paths.n_awaited : qp->paths.n_in_flight, (reads ? qp->paths.read_ns : qp->paths.rtt_ns) / 1000, (reads ? qp->paths.min_read.ns : min_rtt.ns) / 1000);
	for (u32 i = 0; i < qp->paths.n; i++) {
		const struct roan_path *p = &qp->paths.path[i];

		printf("%llu us: path %u: link %td, share %u, in flight %u, rtt %u us%s\n", (unsigned long long)now / 1000, i, link_of(qp - qps, i) - links,
		       p->share, p->in_flight, (reads ? p->read_ns : p->rtt_ns) / 1000, p->failed ? ", failed" : "");
	}
}

static void give_window(struct qp *qp)
{
	qp->auto_paths.memory = &qp->paths;
	if (!qp->req.paths)
		roan_requester_set_paths(&qp->req, &qp->paths);
}

static void sack_arrives(struct qp *qp, const struct roan_pkt *pkt)
{
	give_window(qp);
	roan_requester_sacked(&qp->req, pkt, now);
}

static void response_arrives(struct qp *qp, const struct roan_pkt *pkt)
{
	u32 index, offset;

	if (pkt->opcode == ROAN_OPCODE_SACK)
		sack_arrives(qp, pkt);
	else if (pkt->info->op == ROAN_OP_ACK)
		roan_requester_acked(&qp->req, pkt, now);
	else if (roan_requester_response(&qp->req, pkt, now, &index, &offset) == ROAN_RESP_PLACE)
		roan_requester_placed(&qp->req, pkt, now);
	if (qp->req.reads.any)
		give_window(qp);
	send_all(qp);
}

static void change_load(struct qp *qp)
{
	qp->idle = qp->idle_changes_at && !qp->idle;
	qp->idle_changes_at = now + 2 * MS + draw(18 * MS);
	send_all(qp);
}

static u64 next_time(u64 end)
{
	u64 at = n_events ? min(events[0].at, end) : end, deadline;

	for (u32 i = 0; i < n_qps; i++) {
		deadline = roan_requester_deadline(&qps[i].req);
		if (deadline)
			at = min(at, max(deadline, now));
		if (intermittent)
			at = min(at, qps[i].idle_changes_at);
	}
	return at;
}

static void run(u64 end)
{
	while ((now = next_time(end)) < end) {
		if (n_events && events[0].at == now) {
			struct event e = event_take();
			struct qp *qp = &qps[e.qp];

			if (e.enters) {
				data_enters(e.qp, e.path, e.response, &e.pkt, e.len);
				continue;
			}
			if (qp->auto_paths.wants_memory)
				roan_requester_give_paths(&qp->req, &qp->paths);
			qp->chose_several |= qp->auto_paths.several;
			if (e.response)
				response_arrives(qp, &e.pkt);
			else
				request_arrives(qp, &e.pkt);
			continue;
		}
		for (u32 i = 0; i < n_qps; i++)
			if (intermittent && now >= qps[i].idle_changes_at)
				change_load(&qps[i]);
		for (u32 i = 0; i < n_qps; i++)
			if (roan_requester_timer(&qps[i].req, now) != ROAN_EV_NOTHING)
				send_all(&qps[i]);
	}
}

static void add_link(char *words)
{
	struct link *l = &links[n_links++];
	char *word = strtok(words, ",");

	*l = (struct link) { .gbps = atof(word), .delay = 10000 };
	while ((word = strtok(NULL, ","))) {
		double a, b = 1e6;

		if (sscanf(word, "loss=%lf", &l->loss) == 1 || sscanf(word, "reorder=%lf", &l->reorder) == 1 ||
		    sscanf(word, "early=%lf", &l->early) == 1)
			continue;
		if (sscanf(word, "queue=%lf", &a) == 1)
			l->queue = a * 1000;
		if (sscanf(word, "us=%lf", &a) == 1) {
			l->delay = a * 1e3;
		} else if (sscanf(word, "down=%lf-%lf", &a, &b) >= 1) {
			l->down_from = a * 1e6;
			l->down_to = b * 1e6;
		}
	}
}

/* Prints the results. False: worse than the bounds. */
static bool show_all(u64 ms, double least, double fair, double most)
{
	double share, gbps = 0, rates = 0, slowest = 1e9;
	u64 again = 0;

	for (u32 i = 0; i < n_qps; i++) {
		double qp_gbps = (qps[i].retired - qps[i].retired_before) * MSG * 8.0 / (ms * MS);

		printf("QP %u: %.2f Gb/s, %u packets sent again", i, qp_gbps, qps[i].req.n_resent);
		if (!n_paths)
			printf(", %s paths, %u trials", qps[i].auto_paths.several ? "several" : "one", qps[i].auto_paths.n_trials);
		printf("\n");
		gbps += qp_gbps;
		slowest = min(slowest, qp_gbps);
		again += qps[i].req.n_resent;
	}
	for (u32 i = 0; i < n_links; i++)
		rates += links[i].gbps;
	share = 100 * gbps / rates;
	printf("all: %.2f Gb/s, %.1f %% of the links' rates, %llu packets lost, %llu sent again\n", gbps, share,
	       (unsigned long long)lost, (unsigned long long)again);
	return share >= least && slowest * n_qps * 100 >= gbps * fair && again <= most * max(lost, 1ull);
}

static bool chose_as_expected(const char *expected)
{
	for (u32 i = 0; expected && i < n_qps; i++)
		if (strcmp(expected, "one") ? !qps[i].auto_paths.several : qps[i].chose_several)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	double least = 0, fair = 0, most = 1e9;
	const char *expected = NULL;
	u64 ms = 40, from = 0;
	int c;

	while ((c = getopt(argc, argv, "p:q:t:w:m:s:il:f:r:e:Rv")) != -1) {
		switch (c) {
		case 'p': n_paths = atoi(optarg); break;
		case 'q': n_qps = atoi(optarg); break;
		case 't': ms = atoi(optarg); break;
		case 'w': from = atoi(optarg); break;
		case 'm': mtu_shift = 31 - __builtin_clz(atoi(optarg)); break;
		case 's': seed = (salt = atoi(optarg)) * 0x9e3779b97f4a7c15ull; break;
		case 'i': intermittent = true; break;
		case 'l': least = atof(optarg); break;
		case 'f': fair = atof(optarg); break;
		case 'r': most = atof(optarg); break;
		case 'R': reads = true; break;
		case 'e': expected = optarg; break;
		case 'v': verbose++; break;
		default: return 2;
		}
	}
	for (; optind < argc && n_links < MAX_LINKS; optind++)
		add_link(argv[optind]);
	if (!n_links || !n_qps || n_qps > MAX_QPS)
		return 2;
	for (u32 i = 0; i < n_qps; i++) {
		qp_init(&qps[i]);
		send_all(&qps[i]);
	}
	for (u64 step = 1; step <= ms; step++) {
		u32 before = qps[0].retired;

		run(step * MS);
		for (u32 i = 0; step == from && i < n_qps; i++)
			qps[i].retired_before = qps[i].retired;
		if (verbose)
			printf("%llu ms: %.2f Gb/s, %u sent again\n", (unsigned long long)step,
			       (qps[0].retired - before) * MSG * 8.0 / MS, qps[0].req.n_resent);
		if (verbose > 1)
			show_paths(&qps[0]);
	}
	return show_all(ms - from, least, fair, most) && chose_as_expected(expected) ? 0 : 1;
}
