// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the least work of a message on one CPU: its CRC and one copy of its bytes. This gives an upper limit of the
 * throughput. The benchmark loads this module, reads the results and unloads it. The CRC is the driver's roan_crc32(),
 * packet by packet. The module sends nothing.
 *	insmod roan_limit.ko bytes=N
 *	/sys/module/roan_limit/parameters/crc_ns, copy_ns: ns per MiB; crc: name of the CRC implementation
 */
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/vmalloc.h>
#include "base/base.h"

#define PACKET	4096
#define ROUNDS	9
#define PASSES	16	/* MiB per round; one message if that is more */

static unsigned int bytes = 65536;
module_param(bytes, uint, 0444);
MODULE_PARM_DESC(bytes, "bytes of the message, a multiple of 4096; one that exceeds a cache takes longer per byte");
static unsigned long crc_ns;
module_param(crc_ns, ulong, 0444);
static unsigned long copy_ns;
module_param(copy_ns, ulong, 0444);

static char crc[32];
module_param_string(crc, crc, sizeof(crc), 0444);

static u32 crc_message(const u8 *from, u32 sum)
{
	u32 at;

	for (at = 0; at < bytes; at += PACKET)
		sum ^= roan_crc32(~0u, from + at, PACKET);
	return sum;
}

/* Returns the ns per MiB of the fastest round: slower ones include other work of the machine. Copies if @to is given. */
static unsigned long fastest(u8 *to, const u8 *from)
{
	unsigned int passes = max(1u, (PASSES << 20) / bytes), i, round;
	u64 best = U64_MAX;
	u32 sum = 0;

	for (round = 0; round < ROUNDS; round++) {
		u64 start = ktime_get_ns();

		for (i = 0; i < passes; i++) {
			if (to)
				memcpy(to, from, bytes);
			else
				sum = crc_message(from, sum);
			OPTIMIZER_HIDE_VAR(sum);
			barrier();
		}
		best = min(best, ktime_get_ns() - start);
		cond_resched();
	}
	return div64_u64(best << 20, (u64)passes * bytes);
}

static int __init limit_init(void)
{
	u8 *from, *to;
	int err = -ENOMEM;

	if (!bytes || bytes % PACKET || bytes > 64 << 20)
		return -EINVAL;
	from = vmalloc(bytes);
	to = vmalloc(bytes);
	if (!from || !to)
		goto err_free;
	memset(from, 0x5a, bytes);
	memset(to, 0, bytes);
	err = roan_crc_init();
	if (err)
		goto err_free;
	strscpy(crc, roan_crc_name(), sizeof(crc));
	crc_ns = fastest(NULL, from);
	copy_ns = fastest(to, from);
	roan_crc_exit();
err_free:
	vfree(from);
	vfree(to);
	return err;
}

static void __exit limit_exit(void)
{
}

module_init(limit_init);
module_exit(limit_exit);
MODULE_DESCRIPTION("CRC and copy throughput of this machine, for roan's benchmark");
MODULE_LICENSE("GPL");
