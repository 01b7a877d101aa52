// SPDX-License-Identifier: GPL-2.0
/* Notification point: when a CE-marked packet causes a CNP, by the interval per host. */
#include <kunit/test.h>
#include "core/cc/np.h"

#define T0 1000000ULL

static void cnp_due__first_at_once_then_once_per_interval(struct kunit *test)
{
	struct roan_np np = {};

	KUNIT_EXPECT_TRUE(test, roan_np_cnp_due(&np, 50, T0));
	KUNIT_EXPECT_FALSE(test, roan_np_cnp_due(&np, 50, T0));
	KUNIT_EXPECT_FALSE(test, roan_np_cnp_due(&np, 50, T0 + 49999));
	KUNIT_EXPECT_TRUE(test, roan_np_cnp_due(&np, 50, T0 + 50000));
	KUNIT_EXPECT_FALSE(test, roan_np_cnp_due(&np, 50, T0 + 99999));	/* counts from the last CNP */
	KUNIT_EXPECT_TRUE(test, roan_np_cnp_due(&np, 50, T0 + 100001));
}

/* The flow paused after the mark: no CNP for a queue of long ago. */
static void cnp_pending__ends_after_a_pause(struct kunit *test)
{
	struct roan_np np = {};

	KUNIT_EXPECT_TRUE(test, roan_np_cnp_due(&np, 50, T0));
	KUNIT_EXPECT_FALSE(test, roan_np_cnp_due(&np, 50, T0 + 10000));
	KUNIT_EXPECT_FALSE(test, roan_np_cnp_pending(&np, 50, T0 + 50001 + ROAN_NP_PENDING_NS));
	KUNIT_EXPECT_FALSE(test, np.cnp_pending);
	KUNIT_EXPECT_EQ(test, np.last, T0);
	KUNIT_EXPECT_TRUE(test, roan_np_cnp_due(&np, 50, 2 * T0 + ROAN_NP_PENDING_NS));	/* a new mark */
	KUNIT_EXPECT_FALSE(test, roan_np_cnp_due(&np, 50, 2 * T0 + ROAN_NP_PENDING_NS));
	/* just in time */
	KUNIT_EXPECT_TRUE(test, roan_np_cnp_pending(&np, 50, 2 * T0 + 50000 + 2 * ROAN_NP_PENDING_NS));
}

static void cnp_due__no_interval_answers_all(struct kunit *test)
{
	struct roan_np np = {};

	KUNIT_EXPECT_TRUE(test, roan_np_cnp_due(&np, 0, T0));
	KUNIT_EXPECT_TRUE(test, roan_np_cnp_due(&np, 0, T0));
}

static void cnp_due__early_epoch(struct kunit *test)
{
	struct roan_np np = {};

	KUNIT_EXPECT_TRUE(test, roan_np_cnp_due(&np, 131071, 1));
	KUNIT_EXPECT_FALSE(test, roan_np_cnp_due(&np, 131071, 131071000));
	KUNIT_EXPECT_TRUE(test, roan_np_cnp_due(&np, 131071, 131071001));
}

/* Another CPU sent a CNP at a later time than this CPU's @now: not due. The difference must not wrap to 584 years. */
static void cnp_due__behind_another_cpu(struct kunit *test)
{
	struct roan_np np = {};

	KUNIT_EXPECT_TRUE(test, roan_np_cnp_due(&np, 50, T0));
	KUNIT_EXPECT_FALSE(test, roan_np_cnp_due(&np, 50, T0 - 10));
}

/* A mark within the interval: the first packet after the interval causes the CNP, once. */
static void cnp_pending__is_paid_by_the_next_packet(struct kunit *test)
{
	struct roan_np np = {};

	KUNIT_EXPECT_FALSE(test, roan_np_cnp_pending(&np, 50, T0));
	KUNIT_EXPECT_TRUE(test, roan_np_cnp_due(&np, 50, T0));
	KUNIT_EXPECT_FALSE(test, roan_np_cnp_pending(&np, 50, T0 + 60000));	/* no mark since the last CNP */
	KUNIT_EXPECT_FALSE(test, roan_np_cnp_due(&np, 50, T0 + 10000));
	KUNIT_EXPECT_FALSE(test, roan_np_cnp_due(&np, 50, T0 + 20000));
	KUNIT_EXPECT_FALSE(test, roan_np_cnp_pending(&np, 50, T0 + 49999));
	KUNIT_EXPECT_TRUE(test, roan_np_cnp_pending(&np, 50, T0 + 70000));
	KUNIT_EXPECT_FALSE(test, roan_np_cnp_pending(&np, 50, T0 + 200000));	/* once */
	KUNIT_EXPECT_EQ(test, np.last, T0 + 70000);			/* and it counts as a CNP */
}

/* A CNP for a later mark clears the pending one. */
static void cnp_pending__is_settled_by_a_mark(struct kunit *test)
{
	struct roan_np np = {};

	roan_np_cnp_due(&np, 50, T0);
	roan_np_cnp_due(&np, 50, T0 + 10000);
	KUNIT_EXPECT_TRUE(test, np.cnp_pending);
	KUNIT_EXPECT_TRUE(test, roan_np_cnp_due(&np, 50, T0 + 60000));
	KUNIT_EXPECT_FALSE(test, roan_np_cnp_pending(&np, 50, T0 + 200000));
}

/* Ports of a peer's paths: an interval for each, whatever was sent for others. 64 apart they share one. */
static void port_due__a_port_has_its_own_interval(struct kunit *test)
{
	struct roan_np_ports ports = {};
	u32 i;

	for (i = 0; i < ROAN_NP_PORTS; i++) {
		KUNIT_EXPECT_FALSE(test, roan_np_port_due(&ports, 0xc000 + i, false, 50, T0));
		KUNIT_EXPECT_TRUE(test, roan_np_port_due(&ports, 0xc000 + i, true, 50, T0));
	}
	for (i = 0; i < ROAN_NP_PORTS; i++)
		KUNIT_EXPECT_FALSE(test, roan_np_port_due(&ports, 0xc000 + i, true, 50, T0 + 49999));
	for (i = 0; i < ROAN_NP_PORTS; i++)
		KUNIT_EXPECT_TRUE(test, roan_np_port_due(&ports, 0xc040 + i, true, 50, T0 + 50000));
	KUNIT_EXPECT_FALSE(test, roan_np_port_due(&ports, 0xc000, true, 50, T0 + 49000));	/* behind another CPU */
	KUNIT_EXPECT_TRUE(test, roan_np_port_due(&ports, 0xc000, true, 0, T0 + 50000));
}

static void port_due__pending_is_paid_by_the_same_port(struct kunit *test)
{
	struct roan_np_ports ports = {};
	const u16 port = 0xc03f, other = 0xc03e;

	KUNIT_EXPECT_TRUE(test, roan_np_port_due(&ports, port, true, 50, T0));
	KUNIT_EXPECT_EQ(test, ports.pending, 0);
	KUNIT_EXPECT_FALSE(test, roan_np_port_due(&ports, port, true, 50, T0 + 10000));
	KUNIT_EXPECT_EQ(test, ports.pending, 1ull << 63);
	KUNIT_EXPECT_FALSE(test, roan_np_port_due(&ports, other, false, 50, T0 + 70000));
	KUNIT_EXPECT_FALSE(test, roan_np_port_due(&ports, port, false, 50, T0 + 49999));
	KUNIT_EXPECT_TRUE(test, roan_np_port_due(&ports, port, false, 50, T0 + 70000));
	KUNIT_EXPECT_EQ(test, ports.pending, 0);
	KUNIT_EXPECT_FALSE(test, roan_np_port_due(&ports, port, false, 50, T0 + 200000));	/* once */
	KUNIT_EXPECT_EQ(test, ports.last[63], T0 + 70000);			/* and it counts as a CNP */
}

/* No packet comes from the port with a pending CNP any more. Packets from the others end the CNP. */
static void port_due__pending_of_a_silent_port_ends(struct kunit *test)
{
	const u64 late = T0 + 60001 + ROAN_NP_PENDING_NS;
	struct roan_np_ports ports = {};
	u32 i;

	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_TRUE(test, roan_np_port_due(&ports, i, true, 50, T0 + 10000));
		KUNIT_EXPECT_FALSE(test, roan_np_port_due(&ports, i, true, 50, T0 + 10000));
	}
	KUNIT_EXPECT_FALSE(test, roan_np_port_due(&ports, 7, false, 50, late - 1));
	KUNIT_EXPECT_EQ(test, ports.pending, 7);
	KUNIT_EXPECT_FALSE(test, roan_np_port_due(&ports, 1, false, 50, late));		/* its own, too */
	KUNIT_EXPECT_EQ(test, ports.pending, 4);
	KUNIT_EXPECT_FALSE(test, roan_np_port_due(&ports, 7, false, 50, late));
	KUNIT_EXPECT_EQ(test, ports.pending, 0);
}

/* A second port appears: the first one keeps its interval and its pending CNP. */
static void split__keeps_the_interval_and_the_pending_cnp(struct kunit *test)
{
	struct roan_np_ports ports = {}, idle = {};
	struct roan_np np = {};

	roan_np_cnp_due(&np, 50, T0);
	roan_np_split(&idle, 0xc042, &np);
	KUNIT_EXPECT_EQ(test, idle.pending, 0);
	roan_np_cnp_due(&np, 50, T0 + 1000);
	roan_np_split(&ports, 0xc042, &np);
	KUNIT_EXPECT_FALSE(test, np.cnp_pending);
	KUNIT_EXPECT_TRUE(test, roan_np_port_due(&ports, 0xc043, true, 50, T0 + 2000));
	KUNIT_EXPECT_FALSE(test, roan_np_port_due(&ports, 0xc042, false, 50, T0 + 2000));
	KUNIT_EXPECT_TRUE(test, roan_np_port_due(&ports, 0xc042, false, 50, T0 + 50000));
}

static void address(u8 a[16], u32 host)
{
	memset(a, 0, 16);
	a[10] = 0xff;
	a[11] = 0xff;
	put_unaligned_be32(host, a + 12);
}

static void host__same_address_same_slot(struct kunit *test)
{
	struct roan_np_hosts *hosts = kunit_kzalloc(test, sizeof(*hosts), GFP_KERNEL);
	u8 a[16];

	KUNIT_ASSERT_NOT_NULL(test, hosts);
	address(a, 0x0a000001);
	KUNIT_EXPECT_TRUE(test, roan_np_cnp_due(roan_np_host(hosts, a), 50, T0));
	KUNIT_EXPECT_FALSE(test, roan_np_cnp_due(roan_np_host(hosts, a), 50, T0 + 10));
	a[0] ^= 1;	/* the upper half of the address counts */
	KUNIT_EXPECT_TRUE(test, roan_np_cnp_due(roan_np_host(hosts, a), 50, T0 + 10));
}

/* A host that takes over a slot starts with an empty one: no CNP sent, none pending. */
static void host__takeover_forgets(struct kunit *test)
{
	struct roan_np_hosts *hosts = kunit_kzalloc(test, sizeof(*hosts), GFP_KERNEL);
	struct roan_np *np;
	u8 a[16];

	KUNIT_ASSERT_NOT_NULL(test, hosts);
	address(a, 0x0a000001);
	np = roan_np_host(hosts, a);
	np->host_hash ^= 1;	/* another host with the same slot */
	np->last = T0;
	np->cnp_pending = true;
	KUNIT_EXPECT_PTR_EQ(test, roan_np_host(hosts, a), np);
	KUNIT_EXPECT_EQ(test, np->last, 0);
	KUNIT_EXPECT_FALSE(test, np->cnp_pending);
	KUNIT_EXPECT_TRUE(test, roan_np_cnp_due(np, 50, T0 + 1));
	KUNIT_EXPECT_PTR_EQ(test, roan_np_host(hosts, a), np);
	KUNIT_EXPECT_FALSE(test, roan_np_cnp_due(np, 50, T0 + 2));	/* its own interval */
}

/* Hosts with adjacent addresses spread over the table. Hosts that share a slot get a CNP each time. */
static void host__shared_slots_never_suppress_cnps(struct kunit *test)
{
	struct roan_np_hosts *hosts = kunit_kzalloc(test, sizeof(*hosts), GFP_KERNEL);
	u32 used = 0;
	u8 a[16];

	KUNIT_ASSERT_NOT_NULL(test, hosts);
	for (u32 i = 0; i < 1000; i++) {
		address(a, 0x0a000000 + i);
		KUNIT_EXPECT_TRUE(test, roan_np_cnp_due(roan_np_host(hosts, a), 50, T0 + i));
	}
	for (u32 i = 0; i < ARRAY_SIZE(hosts->slot); i++)
		used += hosts->slot[i].last != 0;
	KUNIT_EXPECT_EQ(test, ARRAY_SIZE(hosts->slot), 256);
	KUNIT_EXPECT_GE(test, used, 200);

	/* Hosts that differ in the upper half of the address, as IPv6 networks do. */
	memset(hosts, 0, sizeof(*hosts));
	for (u32 i = 0; i < 1000; i++) {
		address(a, 1);
		put_unaligned_be32(i, a + 4);
		KUNIT_EXPECT_TRUE(test, roan_np_cnp_due(roan_np_host(hosts, a), 50, T0 + i));
	}
	for (u32 i = 0, n = 0; i < ARRAY_SIZE(hosts->slot); i++) {
		n += hosts->slot[i].last != 0;
		KUNIT_EXPECT_TRUE(test, i < ARRAY_SIZE(hosts->slot) - 1 || n >= 200);
	}
}

/* Senders of a datagram QP share the interval; the pending CNP is for the last one that was marked. */
static void sender_due__pending_is_for_the_marked_sender(struct kunit *test)
{
	struct roan_np np = {};
	u8 a[16], b[16];

	address(a, 0x0a000001);
	address(b, 0x0a000002);
	KUNIT_EXPECT_FALSE(test, roan_np_sender_due(&np, a, 5, false, 50, T0));
	KUNIT_EXPECT_TRUE(test, roan_np_sender_due(&np, a, 5, true, 50, T0));
	KUNIT_EXPECT_FALSE(test, roan_np_sender_due(&np, a, 5, false, 50, T0 + 60000));	/* none is pending */
	KUNIT_EXPECT_FALSE(test, roan_np_sender_due(&np, a, 5, true, 50, T0 + 10000));
	KUNIT_EXPECT_FALSE(test, roan_np_sender_due(&np, a, 6, false, 50, T0 + 60000));
	KUNIT_EXPECT_FALSE(test, roan_np_sender_due(&np, b, 5, false, 50, T0 + 60000));
	KUNIT_EXPECT_FALSE(test, roan_np_sender_due(&np, a, 5, false, 50, T0 + 49999));
	KUNIT_EXPECT_TRUE(test, roan_np_sender_due(&np, a, 5, false, 50, T0 + 60000));
	KUNIT_EXPECT_FALSE(test, roan_np_sender_due(&np, b, 5, true, 50, T0 + 70000));
	KUNIT_EXPECT_FALSE(test, roan_np_sender_due(&np, a, 5, true, 50, T0 + 80000));	/* replaces that */
	KUNIT_EXPECT_FALSE(test, roan_np_sender_due(&np, b, 5, false, 50, T0 + 200000));
	KUNIT_EXPECT_TRUE(test, roan_np_sender_due(&np, a, 5, false, 50, T0 + 200000));
}

/* ... and if that one sends nothing more, it ends with another's datagram. */
static void sender_due__pending_ends_after_a_pause(struct kunit *test)
{
	struct roan_np np = {};
	u8 a[16], b[16];

	address(a, 0x0a000001);
	address(b, 0x0a000002);
	KUNIT_EXPECT_TRUE(test, roan_np_sender_due(&np, a, 5, true, 50, T0));
	KUNIT_EXPECT_FALSE(test, roan_np_sender_due(&np, a, 5, true, 50, T0));
	KUNIT_EXPECT_FALSE(test, roan_np_sender_due(&np, b, 5, false, 50, T0 + 50000 + ROAN_NP_PENDING_NS));
	KUNIT_EXPECT_TRUE(test, np.cnp_pending);
	KUNIT_EXPECT_FALSE(test, roan_np_sender_due(&np, b, 5, false, 50, T0 + 50001 + ROAN_NP_PENDING_NS));
	KUNIT_EXPECT_FALSE(test, np.cnp_pending);
}

static struct kunit_case np_cases[] = {
	KUNIT_CASE(cnp_due__first_at_once_then_once_per_interval),
	KUNIT_CASE(cnp_due__no_interval_answers_all),
	KUNIT_CASE(cnp_due__early_epoch),
	KUNIT_CASE(cnp_due__behind_another_cpu),
	KUNIT_CASE(cnp_pending__is_paid_by_the_next_packet),
	KUNIT_CASE(cnp_pending__is_settled_by_a_mark),
	KUNIT_CASE(cnp_pending__ends_after_a_pause),
	KUNIT_CASE(port_due__a_port_has_its_own_interval),
	KUNIT_CASE(port_due__pending_is_paid_by_the_same_port),
	KUNIT_CASE(port_due__pending_of_a_silent_port_ends),
	KUNIT_CASE(split__keeps_the_interval_and_the_pending_cnp),
	KUNIT_CASE(host__same_address_same_slot),
	KUNIT_CASE(host__takeover_forgets),
	KUNIT_CASE(host__shared_slots_never_suppress_cnps),
	KUNIT_CASE(sender_due__pending_is_for_the_marked_sender),
	KUNIT_CASE(sender_due__pending_ends_after_a_pause),
	{}
};

static struct kunit_suite np_suite = {
	.name = "roan_np",
	.test_cases = np_cases,
};
kunit_test_suite(np_suite);
