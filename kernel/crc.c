// SPDX-License-Identifier: GPL-2.0
/*
 * roan_crc32(): the CRC of the ICRC, by the fastest way this kernel has. Knows nothing of packets.
 *
 * Where crc32_le() is a table walk, the crypto API may have a carry-less multiplication behind "crc32", and if it has not,
 * transport/sparse.c needs no table; where crc32_le() is itself optimised, either only costs. So all three are measured
 * once, when the module is loaded.
 */
#include <crypto/hash.h>
#include <linux/crc32.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "roan.h"
#include "transport/sparse.h"

MODULE_SOFTDEP("pre: crc32-pclmul");

#define CRC_SHORT	128	/* bytes: below it, setting up either of the others costs more than it saves */
#define CRC_PROBE	4096
#define CRC_ROUNDS	16

/* Const between init and exit. Neither: crc32_le() is as good. */
static struct crypto_shash *crc_shash;
static bool crc_sparse;

static u32 by_shash(struct crypto_shash *tfm, u32 crc, const void *p, size_t len)
{
	SHASH_DESC_ON_STACK(desc, tfm);
	u32 *state = shash_desc_ctx(desc);

	/* The state of every "crc32" is the running CRC; usable() checks that this one's is too. */
	desc->tfm = tfm;
	*state = crc;
	if (crypto_shash_update(desc, p, len))
		return crc32_le(crc, p, len);
	return *state;
}

u32 roan_crc32(u32 crc, const void *p, size_t len)
{
	if (len < CRC_SHORT)
		return crc32_le(crc, p, len);
	if (crc_shash)
		return by_shash(crc_shash, crc, p, len);
	return crc_sparse ? roan_crc32_sparse(crc, p, len) : crc32_le(crc, p, len);
}

const char *roan_crc_name(void)
{
	if (crc_shash)
		return crypto_tfm_alg_driver_name(crypto_shash_tfm(crc_shash));
	return crc_sparse ? "roan-sparse" : "crc32_le";
}

static bool usable(struct crypto_shash *tfm, const u8 *buf)
{
	static const u16 lengths[] = { 128, 129, 255, 1024, 1027, CRC_PROBE - 3 };
	int i;

	if (crypto_shash_descsize(tfm) != sizeof(u32))
		return false;
	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		if (by_shash(tfm, ~0u - i, buf + i % 3, lengths[i]) != crc32_le(~0u - i, buf + i % 3, lengths[i]))
			return false;
	return true;
}

/* ns of the fastest of a few rounds by what is in force. */
static u64 fastest(const u8 *buf)
{
	u64 best = U64_MAX;
	u32 crc = ~0u;
	int i;

	for (i = 0; i < CRC_ROUNDS; i++) {
		u64 start = ktime_get_ns();

		crc = roan_crc32(crc, buf, CRC_PROBE);
		OPTIMIZER_HIDE_VAR(crc);
		best = min(best, ktime_get_ns() - start);
	}
	return best;
}

int roan_crc_init(void)
{
	struct crypto_shash *tfm;
	u64 plain, sparse;
	u8 *buf;
	int i;

	buf = kmalloc(CRC_PROBE, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	for (i = 0; i < CRC_PROBE; i++)
		buf[i] = i * 167 + (i >> 8);

	crc_sparse = false;
	plain = fastest(buf);
	crc_sparse = true;
	sparse = fastest(buf);
	crc_sparse = sparse < plain;

	tfm = crypto_alloc_shash("crc32", 0, 0);
	if (!IS_ERR(tfm)) {
		if (usable(tfm, buf))
			crc_shash = tfm;
		if (!crc_shash || fastest(buf) >= min(plain, sparse)) {
			crc_shash = NULL;
			crypto_free_shash(tfm);
		}
	}
	kfree(buf);
	return 0;
}

void roan_crc_exit(void)
{
	if (crc_shash)
		crypto_free_shash(crc_shash);
	crc_shash = NULL;
}
