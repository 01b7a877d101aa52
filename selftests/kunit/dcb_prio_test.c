// SPDX-License-Identifier: GPL-2.0
/*
 * Priority of a packet, by the DCB application table of an interface, which is filled through the kernel's DCB
 * functions.
 */
#include <linux/dcbnl.h>
#include <net/dcbnl.h>
#include "fakes.h"

static void tclass__path_first_then_level_then_default(struct kunit *test)
{
	struct fake *f = test->priv;
	struct roan_av av = { .tclass = 0x6a, .sl = 5 };

	f->dev.qos.traffic_class = 0x28;
	KUNIT_EXPECT_EQ(test, roan_qos_tclass(&f->dev, &av), 0x6a);
	av.tclass = 0;
	KUNIT_EXPECT_EQ(test, roan_qos_tclass(&f->dev, &av), 0xa0);
	av.sl = 8 + 2;	/* not a priority: an IPv4 datagram's completion says so */
	KUNIT_EXPECT_EQ(test, roan_qos_tclass(&f->dev, &av), 0x28);
	av.sl = 0;
	KUNIT_EXPECT_EQ(test, roan_qos_tclass(&f->dev, &av), 0x28);
	KUNIT_EXPECT_EQ(test, roan_qos_tclass(&f->dev, NULL), 0x28);
}

static void refresh__class_selector_without_a_table(struct kunit *test)
{
	struct fake *f = test->priv;
	int tclass;

	for (tclass = 0; tclass < 256; tclass++)
		KUNIT_EXPECT_EQ(test, roan_qos_prio(&f->dev, tclass), tclass >> 5);
}

#if IS_ENABLED(CONFIG_DCB)
static const struct dcbnl_rtnl_ops no_ops;

static void set_app(struct kunit *test, u8 selector, u16 protocol, u8 prio)
{
	struct fake *f = test->priv;
	struct dcb_app app = { .selector = selector, .protocol = protocol, .priority = prio };

	KUNIT_ASSERT_EQ(test, dcb_ieee_setapp(&f->ndev, &app), 0);
}

static void del_app(struct kunit *test, u8 selector, u16 protocol, u8 prio)
{
	struct fake *f = test->priv;
	struct dcb_app app = { .selector = selector, .protocol = protocol, .priority = prio };

	KUNIT_ASSERT_EQ(test, dcb_ieee_delapp(&f->ndev, &app), 0);
}

static u8 prio_of(struct kunit *test, u8 dscp)
{
	struct fake *f = test->priv;

	return roan_qos_prio(&f->dev, dscp << 2 | 2);
}

/* Each change takes effect by the DCB event; the case never calls refresh() itself. */
static void app_event__table_is_followed(struct kunit *test)
{
	struct fake *f = test->priv;

	f->ndev.dcbnl_ops = &no_ops;
	KUNIT_ASSERT_EQ(test, roan_qos_init(), 0);
	roan_qos_add_dev(&f->dev);

	set_app(test, IEEE_8021QAZ_APP_SEL_DSCP, 26, 5);
	KUNIT_EXPECT_EQ(test, prio_of(test, 26), 5);
	KUNIT_EXPECT_EQ(test, prio_of(test, 25), 3);
	set_app(test, IEEE_8021QAZ_APP_SEL_DSCP, 26, 1);	/* two entries for a DSCP: the higher one */
	KUNIT_EXPECT_EQ(test, prio_of(test, 26), 5);

	set_app(test, IEEE_8021QAZ_APP_SEL_DGRAM, ROAN_UDP_PORT, 4);	/* default for DSCPs without an entry */
	set_app(test, IEEE_8021QAZ_APP_SEL_DGRAM, ROAN_UDP_PORT + 1, 7);
	KUNIT_EXPECT_EQ(test, prio_of(test, 26), 5);
	KUNIT_EXPECT_EQ(test, prio_of(test, 25), 4);
	KUNIT_EXPECT_EQ(test, prio_of(test, 0), 4);

	del_app(test, IEEE_8021QAZ_APP_SEL_DGRAM, ROAN_UDP_PORT + 1, 7);
	del_app(test, IEEE_8021QAZ_APP_SEL_DGRAM, ROAN_UDP_PORT, 4);
	del_app(test, IEEE_8021QAZ_APP_SEL_DSCP, 26, 5);
	KUNIT_EXPECT_EQ(test, prio_of(test, 26), 1);
	del_app(test, IEEE_8021QAZ_APP_SEL_DSCP, 26, 1);
	KUNIT_EXPECT_EQ(test, prio_of(test, 26), 3);

	roan_qos_del_dev(&f->dev);
	set_app(test, IEEE_8021QAZ_APP_SEL_DSCP, 26, 5);	/* after del_dev: no effect */
	del_app(test, IEEE_8021QAZ_APP_SEL_DSCP, 26, 5);
	KUNIT_EXPECT_EQ(test, prio_of(test, 26), 3);
	roan_qos_exit();
}
#endif

static struct kunit_case cases[] = {
	KUNIT_CASE(tclass__path_first_then_level_then_default),
	KUNIT_CASE(refresh__class_selector_without_a_table),
#if IS_ENABLED(CONFIG_DCB)
	KUNIT_CASE(app_event__table_is_followed),
#endif
	{}
};

static struct kunit_suite suite = {
	.name = "roan_dcb_prio",
	.init = fake_init,
	.exit = fake_exit,
	.test_cases = cases,
};
kunit_test_suite(suite);
