// SPDX-License-Identifier: GPL-2.0
/*
 * Simulates one scenario from the command line and prints one line of results; or, with --check, compares scenarios
 * with the model. --help lists the options.
 */
#include <getopt.h>
#include "ccsim.h"
#include "checks.h"
#include "core/flow/pfc_rules.h"

static const char usage[] =
	"usage: ccsim [options] [NAME=VALUE ...]      parameters as in cc_param/\n"
	"       ccsim --check [--quick]               compare with the fluid model\n"
	"  --n N            flows (2)                 --gbps G         every link (40)\n"
	"  --algo A         none fixed dcqcn dcqcn-mlx swift (dcqcn)\n"
	"  --frame BYTES    on the wire (1000)        --rtt-us U       empty round trip (4)\n"
	"  --kmin B --kmax B --pmax P                 marking (5000 200000 0.01)\n"
	"  --red LAW        instant: p; count: sch_red's 2p/(1+p) (instant)\n"
	"  --buffer BYTES   of the bottleneck (12000000)\n"
	"  --ms MS          length (200)              --join-ms MS     start of the other flows (10)\n"
	"  --cap-mbps M     of each flow (0: none)    --adapters N     the last N flows: dcqcn-mlx, its defaults (0)\n"
	"  --dilate         paper's times and steps for 40 Gb/s, scaled to --gbps\n"
	"  --seed S         of the marks (1)         --model          print the fluid model's results instead\n"
	"  --marks WHEN     packets are marked when entering or leaving the queue (entering)\n"
	"  --parking-lot    three flows: one through two ports in a row, one more at each port\n"
	"  --victim         N flows (at most 20) to one port, one flow to another, over switches with PFC (victim.c)\n";

static int refuse(const char *what, const char *value)
{
	fprintf(stderr, "ccsim: %s '%s'\n%s", what, value, usage);
	return 2;
}

static bool set_param(struct setup *s, const char *assignment)
{
	const char *equals = strchr(assignment, '=');

	for (u32 i = 0; equals && i < ROAN_CC_NUM_PARAMS; i++) {
		const char *name = roan_cc_param_table[i].name;

		if (strlen(name) == equals - assignment && !strncmp(name, assignment, strlen(name)))
			return roan_cc_param_set(&s->params, i, strtoul(equals + 1, NULL, 0));
	}
	return false;
}

enum choice {
	N, GBPS, ALGO, FRAME, RTT, KMIN, KMAX, PMAX, RED, BUFFER, MS, JOIN, CAP, ADAPTERS, DILATE, SEED, MODEL, MARKS, PARKING_LOT, VICTIM, CHECK, QUICK, HELP
};

static const struct option options[] = {
	{ "n", 1, NULL, N }, { "gbps", 1, NULL, GBPS }, { "algo", 1, NULL, ALGO }, { "frame", 1, NULL, FRAME },
	{ "rtt-us", 1, NULL, RTT }, { "kmin", 1, NULL, KMIN }, { "kmax", 1, NULL, KMAX }, { "pmax", 1, NULL, PMAX },
	{ "red", 1, NULL, RED }, { "buffer", 1, NULL, BUFFER }, { "ms", 1, NULL, MS }, { "join-ms", 1, NULL, JOIN },
	{ "cap-mbps", 1, NULL, CAP }, { "adapters", 1, NULL, ADAPTERS }, { "dilate", 0, NULL, DILATE }, { "seed", 1, NULL, SEED },
	 { "model", 0, NULL, MODEL }, { "marks", 1, NULL, MARKS },
	{ "parking-lot", 0, NULL, PARKING_LOT }, { "victim", 0, NULL, VICTIM }, { "check", 0, NULL, CHECK }, { "quick", 0, NULL, QUICK },
	{ "help", 0, NULL, HELP }, {}
};

static int print_model(const struct setup *s)
{
	struct fixed_point point;
	struct fluid course;

	if (s->algo != ROAN_CC_DCQCN)
		return refuse("--model supports --algo dcqcn only, not", roan_cc_name(s->algo));
	fluid(s, &course);
	if (s->two_ports) {		/* different shares: no fixed point, no convergence */
		printf("queue_kb=%.1f util=%.4f jain=%.4f\n", course.queue_mean / 1e3, course.util, course.jain);
		return 0;
	}
	fixed_point(s, &point);
	printf("queue_kb=%.1f mark_share=%.5f alpha=%.4f cnps_per_s=%.0f settled_queue_kb=%.1f util=%.4f jain=%.4f converge_ms=%.1f\n",
	       point.queue / 1e3, point.p, point.alpha, point.cnps, course.queue_mean / 1e3,
	       course.util, course.jain, course.converge_s * 1e3);
	return 0;
}

int main(int argc, char **argv)
{
	struct setup s = setup_paper(2, 40);
	bool check = false, quick = false, dilate = false, model = false, victim = false;
	double ms = 200, join = 10;
	struct victim_figures hit;
	struct figures out;
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch ((enum choice)o) {
		case N: s.flows = strtoul(optarg, NULL, 0); break;
		case GBPS: s.link = strtod(optarg, NULL) * 1e9; break;
		case ALGO:
			s.algo = roan_cc_find(optarg);
			if (s.algo == ROAN_CC_NUM_ALGOS)
				return refuse("no such algorithm", optarg);
			roan_cc_params_default(&s.params, s.algo);
			break;
		case FRAME: s.frame = strtoul(optarg, NULL, 0); break;
		case RTT: s.rtt_ns = strtod(optarg, NULL) * 1000; break;
		case KMIN: s.red.kmin = strtod(optarg, NULL); break;
		case KMAX: s.red.kmax = strtod(optarg, NULL); break;
		case PMAX: s.red.pmax = strtod(optarg, NULL); break;
		case RED: s.red.law = strcmp(optarg, "count") ? RED_INSTANT : RED_COUNT; break;
		case BUFFER: s.buffer = strtoull(optarg, NULL, 0); break;
		case MS: ms = strtod(optarg, NULL); break;
		case JOIN: join = strtod(optarg, NULL); break;
		case CAP: s.cap = strtod(optarg, NULL) * 1e6; break;
		case ADAPTERS: s.adapters = strtoul(optarg, NULL, 0); break;
		case DILATE: dilate = true; break;
		case SEED: s.seed = strtoull(optarg, NULL, 0); break;
		case MODEL: model = true; break;
		case MARKS:
			s.marks_leaving = !strcmp(optarg, "leaving");
			if (!s.marks_leaving && strcmp(optarg, "entering"))
				return refuse("--marks takes entering or leaving, not", optarg);
			break;
		case PARKING_LOT:
			s.scenario = "parking-lot";
			s.two_ports = true;
			s.flows = 3;
			break;
		case VICTIM: victim = true; break;
		case CHECK: check = true; break;
		case QUICK: quick = true; break;
		case HELP: fputs(usage, stdout); return 0;
		default: return refuse("no such option", argv[optind - 1]);
		}
	}
	if (check)
		return run_checks(quick);
	if (dilate)
		setup_dilate(&s);
	for (; optind < argc; optind++) {
		if (!set_param(&s, argv[optind]))
			return refuse("no such parameter, or out of range (see Documentation/qos-pfc.md):", argv[optind]);
	}
	if (!s.flows || s.link < 1000000 || s.frame < 64 || s.frame > 65535 || ms <= join || join < 0 || s.red.kmax <= s.red.kmin)
		return refuse("out of range or inconsistent:", "n, gbps, frame, ms, join-ms, kmin or kmax");
	if (s.adapters && s.adapters >= s.flows)
		return refuse("one flow at least is no adapter's:", "adapters");
	setup_times(&s, ms, join);
	if (model)
		return print_model(&s);
	if (victim) {
		if (s.flows > VICTIM_FLOWS)
			return refuse("with --victim at most 20 flows:", "n");
		simulate_victim(&s, &hit);
		print_victim(&s, &hit);
		return 0;
	}
	simulate(&s, &out);
	print_figures(&s, &out);
	return 0;
}
