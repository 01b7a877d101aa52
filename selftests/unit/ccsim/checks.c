// SPDX-License-Identifier: GPL-2.0
/*
 * Expected results, as KTAP. The fluid model gives the mean of many runs, so results are means over a few seeds. The
 * model ignores that a queue cannot be shorter than 0 and that the marking probability cannot exceed 1. Where its fixed
 * point is close to one of these limits the check extends the slope or has a wider tolerance, with a comment.
 */
#include <math.h>
#include "checks.h"

static int checks, failures;
static u32 seeds;	/* runs per mean */

struct setup setup_paper(u32 flows, double gbps)
{
	struct setup s = {
		.scenario = "incast", .algo = ROAN_CC_DCQCN, .flows = flows, .link = gbps * 1e9, .frame = 1000,
		.red = { .kmin = 5000, .kmax = 200000, .pmax = 0.01 }, .buffer = 12000000, .rtt_ns = 4000, .seed = 1,
	};

	roan_cc_params_default(&s.params, ROAN_CC_DCQCN);
	setup_times(&s, 200, 10);
	return s;
}

void setup_dilate(struct setup *s)
{
	double slower = 40e9 / s->link;

	s->params.dce_tcp_rtt = round(55 * slower);
	s->params.rpg_time_reset = round(55 * slower);
	s->params.min_time_between_cnps = round(50 * slower);
	s->params.rpg_ai_rate = fmax(1, round(40 / slower));
	s->params.rpg_hai_rate = fmax(1, round(200 / slower));
	s->params.rpg_min_rate = fmax(1, round(10 / slower));
	s->rtt_ns *= slower;
}

void setup_times(struct setup *s, double ms, double join_ms)
{
	s->run_ns = ms * 1e6;
	s->join_ns = s->flows > 1 ? join_ms * 1e6 : 0;
	s->measure_ns = s->run_ns / 2;
	s->window_ns = s->run_ns / WINDOWS;
}

void print_figures(const struct setup *s, const struct figures *f)
{
	printf("scenario=%s n=%u gbps=%g frame_bytes=%u jain=%.4f util=%.4f queue_mean_kb=%.1f queue_p99_kb=%.1f ",
	       s->scenario, s->flows, s->link / 1e9, s->frame, f->jain, f->util, f->queue_mean / 1e3, f->queue_p99 / 1e3);
	if (s->adapters)
		printf("beside_adapters=%.3f ", f->beside);
	printf("drops=%llu pauses=0 cnps=%llu converge_ms=%.1f\n", (unsigned long long)f->drops,
	       (unsigned long long)f->cnps, f->converge_s * 1e3);
}

static void result(bool ok, const char *name)
{
	printf("%sok %d ccsim: %s\n", ok ? "" : "not ", ++checks, name);
	failures += !ok;
}

/* Means over @runs runs, the maximum of the drops, and the mean Jain index of each window. */
static void simulate_mean(struct setup s, u32 runs, struct figures *mean)
{
	memset(mean, 0, sizeof(*mean));
	for (s.seed = 1; s.seed <= runs; s.seed++) {
		struct figures f;

		simulate(&s, &f);
		mean->jain += f.jain / runs;
		mean->util += f.util / runs;
		mean->queue_mean += f.queue_mean / runs;
		mean->queue_p99 += f.queue_p99 / runs;
		mean->converge_s += f.converge_s / runs;
		mean->cnps += f.cnps / runs;
		mean->beside += f.beside / runs;
		mean->drops = max(mean->drops, f.drops);
		for (int i = 0; i < WINDOWS; i++)
			mean->window_jain[i] += f.window_jain[i] / runs;
	}
}

/*
 * Seconds from the join until the shares stay even: a mean Jain index of 0.99 (two flows within 10 %), or the long-run
 * index of windows of this length, if random cuts keep that below 0.99.
 */
static double converged(const struct setup *s, const struct figures *mean)
{
	double steady = 0;
	int last = 0;

	for (int i = WINDOWS / 2; i < WINDOWS; i++)
		steady += mean->window_jain[i] / (WINDOWS / 2);
	for (int i = 0; i < WINDOWS; i++) {
		if ((i + 1) * s->window_ns > s->join_ns && mean->window_jain[i] < fmin(0.99, steady - 0.005))
			last = i + 1;
	}
	return fmax(0, last * (double)s->window_ns - s->join_ns) * 1e-9;
}

static void fair_and_busy(const char *what, const struct setup *s, const struct figures *f)
{
	char name[160];

	snprintf(name, sizeof(name), "%s n=%u gbps=%g jain %.4f util %.4f drops %llu", what, s->flows, s->link / 1e9, f->jain,
		 f->util, (unsigned long long)f->drops);
	result(f->jain >= 0.99 && f->util >= 0.95 && !f->drops, name);
}

static void against_model(const char *what, struct setup s, double tolerance, bool convergence)
{
	struct fixed_point point;
	struct figures f;
	struct fluid course;
	char name[160];
	double off, took;

	simulate_mean(s, convergence ? seeds : 3, &f);
	fixed_point(&s, &point);
	print_figures(&s, &f);
	off = f.queue_mean / point.queue - 1;
	snprintf(name, sizeof(name), "%s n=%u gbps=%g queue %.1f KB, model %.1f, %+.0f %%, allowed %.0f", what, s.flows,
		 s.link / 1e9, f.queue_mean / 1e3, point.queue / 1e3, off * 100, tolerance * 100);
	result(fabs(off) <= tolerance, name);
	fair_and_busy(what, &s, &f);
	if (!convergence)
		return;
	fluid(&s, &course);
	took = converged(&s, &f);
	snprintf(name, sizeof(name), "%s n=%u gbps=%g converged in %.1f ms, model %.1f", what, s.flows, s.link / 1e9,
		 took * 1e3, course.converge_s * 1e3);
	result(took <= 1.5 * course.converge_s, name);
}

/* Comparison with the model at 40 Gb/s, with packets paced one by one as in the model. */
static void paper_at_40(enum red_law law)
{
	for (u32 n = 2; n <= 8; n *= 2) {
		struct setup s = setup_paper(n, 40);

		s.params.pacer_burst_max = 0;
		s.red.law = law;
		if (law == RED_COUNT) {
			against_model("sch_red's marks,", s, 0.15, true);
			continue;
		}
		s.red.kmax = 5000 + 5 * 195000;	/* same slope, but p does not jump to 1 */
		s.red.pmax = 0.05;
		/* With two flows the queue is often empty, which shifts its mean: wider tolerance. */
		against_model("random marks,", s, n == 2 ? 0.20 : 0.15, true);
	}
}

/* Slower and faster links, with scaled times and steps: the queue in bytes is the same. */
static void paper_at_speeds(void)
{
	static const double gbps[] = { 1, 10, 25, 100 };

	for (u32 i = 0; i < ARRAY_SIZE(gbps); i++) {
		struct setup s = setup_paper(4, gbps[i]);

		setup_dilate(&s);
		setup_times(&s, 200 * 40 / gbps[i], 10 * 40 / gbps[i]);
		s.params.pacer_burst_max = 0;
		s.red.law = RED_COUNT;
		against_model("dilated,", s, 0.15, false);
	}
}

/* Trains instead of single packets change the queue by a few packets only. */
static void paper_in_trains(void)
{
	struct setup s = setup_paper(4, 40);

	s.red.law = RED_COUNT;
	against_model("trains,", s, 0.25, false);
}

/* 16 senders that start at line rate fit into the paper's switch of 12 MB. */
static void paper_16_to_1(void)
{
	struct setup s = setup_paper(16, 40);
	struct figures f;

	simulate(&s, &f);
	print_figures(&s, &f);
	fair_and_busy("16:1,", &s, &f);
}

/* Marks made on leaving the queue are at most one round trip old: the paper's steps are then stable with 64 flows. */
static void marked_leaving(void)
{
	struct setup s = setup_paper(64, 40);
	struct figures f;

	s.marks_leaving = true;
	s.params.window_max = 128;	/* KB; without it 64 flows at line rate lose packets before the first mark */
	setup_times(&s, 100, 10);
	simulate(&s, &f);
	print_figures(&s, &f);
	fair_and_busy("marks of packets that leave,", &s, &f);
}

/* A flow through two ports gets marks of both, and a share as in the model. */
static void parking_lot(void)
{
	struct setup s = setup_paper(3, 40);
	struct figures f;
	struct fluid course;
	char name[160];

	s.scenario = "parking-lot";
	s.marks_leaving = true;
	s.two_ports = true;
	simulate_mean(s, 4, &f);
	fluid(&s, &course);
	snprintf(name, sizeof(name), "two ports, jain %.4f, model %.4f, util %.4f drops %llu", f.jain, course.jain, f.util,
		 (unsigned long long)f.drops);
	result(fabs(f.jain - course.jain) <= 0.03 && f.util >= 0.95 && !f.drops, name);
}

static void adapter(double gbps)
{
	struct setup s = setup_paper(8, gbps);
	struct figures f;

	s.algo = ROAN_CC_DCQCN_MLX;
	roan_cc_params_default(&s.params, ROAN_CC_DCQCN_MLX);
	s.red = (struct red) { .kmin = 100000, .kmax = 400000, .pmax = 0.2 };
	setup_times(&s, 400, 10);
	simulate(&s, &f);
	print_figures(&s, &f);
	fair_and_busy("dcqcn-mlx,", &s, &f);
}

/*
 * Beside an adapter, which runs dcqcn-mlx, the paper's parameters get less than half of its rate: their alpha is the
 * share of periods of 55 us that had a CNP, that of the adapter of periods of 1 us, so its cuts are smaller.
 */
static void beside_adapters(enum roan_cc_algo algo, double least, double most)
{
	struct setup s = setup_paper(2, 25);
	struct figures f;
	char name[160];

	s.algo = algo;
	roan_cc_params_default(&s.params, algo);
	s.adapters = 1;
	s.red = (struct red) { .kmin = 100000, .kmax = 400000, .pmax = 0.2 };
	setup_times(&s, 400, 10);
	simulate_mean(s, 4, &f);
	print_figures(&s, &f);
	snprintf(name, sizeof(name), "%s beside an adapter gets %.2f of its rate, %.2f to %.2f, util %.4f drops %llu",
		 roan_cc_name(algo), f.beside, least, most, f.util, (unsigned long long)f.drops);
	result(f.beside >= least && f.beside <= most && f.util >= 0.95 && !f.drops, name);
}

/* Without marks the queue is the target delay minus the path delay; at 40 Gb/s 1 us is 5 KB. */
static void delay_only(u32 flows)
{
	struct setup s = setup_paper(flows, 40);
	struct figures f;
	double most;
	char name[160];

	s.algo = ROAN_CC_SWIFT;
	roan_cc_params_default(&s.params, ROAN_CC_SWIFT);
	s.params.swift_target_us = 60;
	s.rtt_ns = 20000;
	s.red.kmin = 1e12;
	s.red.kmax = 2e12;
	simulate(&s, &f);
	print_figures(&s, &f);
	fair_and_busy("swift,", &s, &f);
	most = (60 - 20 + s.params.swift_fs_range_us) * 5000.0;
	snprintf(name, sizeof(name), "swift, n=%u queue %.1f KB, at most %.1f", flows, f.queue_mean / 1e3, most / 1e3);
	result(f.queue_mean <= most, name);
}

/* Two thousand flows, each with a cap of four times its share: even shares, no loss. */
static void crowd(void)
{
	struct setup s = setup_paper(2000, 100);
	struct figures f;
	char name[160];

	s.cap = 200000000;
	s.params.rpg_min_rate = 1;
	s.buffer = 100000000;
	setup_times(&s, 100, 1);
	simulate(&s, &f);
	print_figures(&s, &f);
	snprintf(name, sizeof(name), "crowd, n=%u jain %.4f util %.4f drops %llu", s.flows, f.jain, f.util,
		 (unsigned long long)f.drops);
	result(f.jain >= 0.95 && f.util >= 0.95 && !f.drops, name);
}

/* PFC alone loses no packet but blocks the victim flow. With congestion control there are hardly any pauses. */
static void victim(u32 flows)
{
	struct setup s = setup_paper(flows, 40);
	struct victim_figures none, paper, again;
	char name[160];

	s.red.law = RED_COUNT;
	setup_times(&s, 200, 10);
	simulate_victim(&s, &paper);
	print_victim(&s, &paper);
	simulate_victim(&s, &again);
	s.algo = ROAN_CC_NONE;
	simulate_victim(&s, &none);
	print_victim(&s, &none);
	snprintf(name, sizeof(name), "victim, n=%u: PFC alone loses nothing, but blocks the victim", flows);
	result(none.pauses && !none.drops && none.util >= 0.95 && none.victim <= 0.5, name);
	snprintf(name, sizeof(name), "victim, n=%u: with DCQCN %llu pauses of %llu, at most 5 %%", flows,
		 (unsigned long long)paper.pauses, (unsigned long long)none.pauses);
	result(paper.pauses * 20 <= none.pauses && !paper.drops, name);
	snprintf(name, sizeof(name), "victim, n=%u: with DCQCN it keeps %.1f %% of its link, at least 95", flows, paper.victim * 100);
	result(paper.victim >= 0.95 && paper.util >= 0.95, name);
	result(!memcmp(&paper, &again, sizeof(again)), "victim, two runs, the same figures");
}

static void same_seed_same_figures(void)
{
	struct setup s = setup_paper(4, 40);
	struct figures a, b;

	setup_times(&s, 20, 1);
	simulate(&s, &a);
	simulate(&s, &b);
	result(!memcmp(&a, &b, sizeof(a)), "same seed, same figures");
	s.seed++;
	simulate(&s, &b);
	result(memcmp(&a, &b, sizeof(a)), "another seed, others");
}

int run_checks(bool quick)
{
	seeds = quick ? 16 : 32;
	printf("KTAP version 1\n");
	same_seed_same_figures();
	paper_at_40(RED_COUNT);
	paper_16_to_1();
	paper_in_trains();
	marked_leaving();
	parking_lot();
	adapter(100);
	beside_adapters(ROAN_CC_DCQCN, 0.1, 0.5);
	beside_adapters(ROAN_CC_DCQCN_MLX, 0.8, 1.25);
	victim(8);
	delay_only(8);
	if (!quick) {
		paper_at_40(RED_INSTANT);
		paper_at_speeds();
		adapter(40);
		delay_only(2);
		delay_only(16);
		victim(4);
		victim(16);
		crowd();
	}
	printf("1..%d\n", checks);
	return failures != 0;
}
