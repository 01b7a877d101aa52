// SPDX-License-Identifier: GPL-2.0
/* Programs: made from random numbers, mutated, run, written as text. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;
const struct call_type *types[256];
uint32_t nr_types;
static uint32_t total_weight;

void random_seed(uint64_t seed)
{
	static const struct call_type *const tables[] = { write_calls, ioctl_calls, ring_calls, system_calls, packet_calls };
	const struct call_type *t;
	uint32_t i;

	state = seed;
	nr_types = total_weight = 0;
	for (i = 0; i < ARRAY_SIZE(tables); i++)
		for (t = tables[i]; t->name; t++) {
			types[nr_types++] = t;
			total_weight += t->weight;
		}
}

uint64_t random_number(void)	/* splitmix64 */
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint32_t below(uint32_t n) { return random_number() % n; }

int type_named(const char *name)
{
	uint32_t i;

	for (i = 0; i < nr_types; i++)
		if (!strcmp(types[i]->name, name))
			return i;
	fprintf(stderr, "no call type %s\n", name);
	exit(2);
}

static void random_call(struct call *c)
{
	uint32_t i, at = below(total_weight);

	for (i = 0; at >= types[i]->weight; i++)
		at -= types[i]->weight;
	c->op = i;
	for (i = 0; i < sizeof(c->arg); i++)
		c->arg[i] = random_number();
	if (below(12))
		c->arg[0] &= ~0x80;
}

static void insert(struct program *p, uint32_t at, const struct call *c)
{
	if (p->n >= MAX_CALLS)
		p->n = MAX_CALLS - 1;
	if (at > p->n)
		at = p->n;
	memmove(&p->calls[at + 1], &p->calls[at], (p->n - at) * sizeof(*c));
	p->calls[at] = *c;
	p->n++;
}

/* Most programs begin with a connected pair, so that what follows finds something to work on. */
void program_generate(struct program *p)
{
	uint32_t n = 4 + below(MAX_CALLS - 6);
	struct call c;

	p->n = 0;
	if (below(8)) {
		random_call(&c);
		c.op = type_named("pair");
		if (below(3))
			c.arg[8] %= 80;		/* to RTS */
		if (below(4))
			c.arg[4] %= 200, c.arg[2] %= 240;
		c.arg[0] &= 1;
		insert(p, 0, &c);
	}
	while (p->n < n) {
		random_call(&c);
		insert(p, p->n, &c);
	}
}

void program_mutate(struct program *p, const struct program *other)
{
	uint32_t n = 1 + below(5), at, from, len;
	struct call c;

	while (n--) {
		at = p->n ? below(p->n) : 0;
		switch (p->n ? below(10) : 0) {
		case 0: case 1: case 2:
			random_call(&c);
			insert(p, below(p->n + 1), &c);
			break;
		case 3:
			memmove(&p->calls[at], &p->calls[at + 1], (--p->n - at) * sizeof(c));
			break;
		case 4:
			c = p->calls[at];
			insert(p, below(p->n + 1), &c);
			break;
		case 5: case 6:
			p->calls[at].arg[below(sizeof(c.arg))] = random_number();
			break;
		case 7:
			p->calls[at].arg[below(sizeof(c.arg))] ^= 1 << below(8);
			break;
		case 8:
			random_call(&c);
			c.op = p->calls[at].op;
			p->calls[at] = c;
			break;
		case 9:		/* a part of the other one */
			if (!other->n)
				break;
			from = below(other->n);
			len = 1 + below(other->n - from);
			while (len-- && p->n < MAX_CALLS)
				insert(p, ++at, &other->calls[from++]);
			break;
		}
	}
}

/* The well-formed programs that an empty corpus starts with: each operation between pairs of each kind. */
uint32_t program_seed(uint32_t n, struct program *p)
{
	static const uint8_t kinds[] = { 0, 4, 6 };	/* a[2] of a pair: RC, UC, UD */
	uint32_t op = n % 16, kind = n / 16 % 3, one_device = n / 48, i;

	if (n >= 96)
		return 0;
	*p = (struct program) { 0 };
	insert(p, 0, &(struct call) { type_named("pair"), { 0, one_device | (op == 3 ? 2 : 0), kinds[kind], 1, 4, op, 0x20 | 0xc0, 4 + 17 * 4, 0, 0, 0, op == 6 ? 7 : 0, 16 } });
	if (op == 11)
		insert(p, p->n, &(struct call) { type_named("alloc_mw"), { 0, 0, 1 } });
	for (i = 0; i < 3; i++)
		insert(p, p->n, &(struct call) { type_named("post_recv"), { !one_device, 0, op == 3, 0, 0, 0, 15, 0, 7, 0, 1 } });
	for (i = 0; i < 3; i++)
		insert(p, p->n, &(struct call) { type_named("post_send"), { 0, 0, op, 2, 0, op == 11 ? 0x40 : 0, i ? 4 : 15, 0, i ? 0x45 : 0, 0, 1 + i } });
	insert(p, p->n, &(struct call) { type_named("pause"), { 0, 100 } });
	insert(p, p->n, &(struct call) { type_named("poll_cq"), { 0, 0, 1 } });
	insert(p, p->n, &(struct call) { type_named("poll_cq"), { 1, 0, 3 } });
	insert(p, p->n, &(struct call) { type_named("destroy"), { 0, 0, 0 } });
	return 1;
}

void program_print(FILE *f, const struct program *p)
{
	uint32_t i, j;

	for (i = 0; i < p->n; i++) {
		fprintf(f, "%-16s", types[p->calls[i].op % nr_types]->name);
		for (j = 0; j < sizeof(p->calls[i].arg); j++)
			fprintf(f, " %02x", p->calls[i].arg[j]);
		fputc('\n', f);
	}
}

/* As text, so that a corpus outlives a change of the table. Programs end with a line "end". */
void program_write(FILE *f, const struct program *p)
{
	program_print(f, p);
	fputs("end\n", f);
}

bool program_read(FILE *f, struct program *p)
{
	char line[128], name[32], *next;
	struct call c;
	uint32_t i;
	int at;

	p->n = 0;
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "end", 3))
			return true;
		if (sscanf(line, "%31s%n", name, &at) != 1 || p->n == MAX_CALLS)
			continue;
		for (i = 0; i < nr_types && strcmp(types[i]->name, name); i++)
			;
		if (i == nr_types)
			continue;
		c.op = i;
		for (i = 0, next = line + at; i < sizeof(c.arg); i++)
			c.arg[i] = strtoul(next, &next, 16);
		p->calls[p->n++] = c;
	}
	return p->n;
}

static sigjmp_buf fault;

static void on_fault(int signal)
{
	siglongjmp(fault, signal);
}

/* A call that faults, as in a ring of a device that is gone, is over; the program goes on. */
void program_run(const struct program *p)
{
	static struct run r;
	static volatile uint32_t i;
	struct sigaction sa = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };

	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	run_begin(&r);
	i = 0;
	sigsetjmp(fault, 1);
	while (i < p->n) {
		const struct call *c = &p->calls[i++];

		if (verbose)
			printf("%s\n", types[c->op % nr_types]->name);
		types[c->op % nr_types]->run(&r, c->arg);
	}
	run_end(&r);
}
