// SPDX-License-Identifier: GPL-2.0
/*
 * roan_crc32() and the ICRC of data in place or while it is copied, by the fastest CRC-32 method of this machine. Does
 * not decide what the ICRC covers (core/crc/icrc.c).
 *
 * In some kernels crc32_le() is a table walk. The crypto API may then have a carry-less multiplication under the name
 * "crc32", and core/crc/crc_shiftxor.c needs no table. Where crc32_le() itself is optimised, both only add cost.
 * Before 6.15 neither folds more than 128 bits at a time; core/crc/crc_vpclmul.c folds 256 or 512. So all methods are
 * timed once, when the module is loaded.
 */
#include <crypto/hash.h>
#include <linux/crc32.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "base/base.h"
#include "core/crc/crc_shiftxor.h"
#include "core/crc/crc_vpclmul.h"

MODULE_SOFTDEP("pre: crc32-pclmul");

#define CRC_SHORT	128	/* bytes; below this, the setup of the other methods costs more than they save */
#define CRC_PROBE	4096
#define CRC_ROUNDS	16
#define CRC_TIMES	8	/* CRCs per timed round, as one clock read takes as long as one fast CRC */

/* Constant between init and exit. If neither of the first two is set, crc32_le() is as fast. */
static struct crypto_shash *crc_shash;
static bool crc_sparse;
static u32 crc_bits;		/* fold width of roan_crc32_vpclmul() in bits; 0: not used */

static u32 crc_by_shash(struct crypto_shash *tfm, u32 crc, const void *p, size_t len)
{
	SHASH_DESC_ON_STACK(desc, tfm);
	u32 *state = shash_desc_ctx(desc);

	/* A "crc32" shash keeps the running CRC as its state; crc_shash_usable() verifies that for this one. */
	desc->tfm = tfm;
	*state = crc;
	if (crypto_shash_update(desc, p, len))
		return crc32_le(crc, p, len);
	return *state;
}

/*
 * Returns false if folding is not possible: method not selected, data too short, or FPU not usable in this context. At
 * most one packet is folded per FPU section, which bounds the time with preemption off.
 */
static bool crc_by_folding(u32 *crc, const u8 *before, void *to, const void *p, size_t len)
{
	size_t done;

	if (!crc_bits || len < ROAN_VPCLMUL_MIN || !roan_crc_fpu_begin())
		return false;
	done = roan_crc32_vpclmul(crc_bits, crc, before, to, p, len);
	roan_crc_fpu_end();
	if (done == len)
		return true;
	if (to) {
		memcpy(to + done, p + done, len - done);
		p = to;		/* the source may change meanwhile; CRC what was copied */
	}
	*crc = crc32_le(*crc, p + done, len - done);
	return true;
}

u32 roan_crc32(u32 crc, const void *p, size_t len)
{
	if (len < CRC_SHORT)
		return crc32_le(crc, p, len);
	if (crc_by_folding(&crc, NULL, NULL, p, len))
		return crc;
	if (crc_shash)
		return crc_by_shash(crc_shash, crc, p, len);
	return crc_sparse ? roan_crc32_shiftxor(crc, p, len) : crc32_le(crc, p, len);
}

/* Includes a pending BTH in the folding. */
static bool crc_icrc_by_folding(struct roan_icrc *icrc, void *to, const void *p, size_t len)
{
	u8 block[16];

	if (icrc->bth_waits)
		roan_icrc_bth_block(icrc, block);
	if (!crc_by_folding(&icrc->state, icrc->bth_waits ? block : NULL, to, p, len))
		return false;
	icrc->bth_waits = false;
	return true;
}

void roan_icrc_add(struct roan_icrc *icrc, const void *p, size_t len)
{
	if (!crc_icrc_by_folding(icrc, NULL, p, len))
		icrc->state = roan_crc32(roan_icrc_finish(icrc), p, len);
}

void roan_icrc_copy(struct roan_icrc *icrc, void *to, const void *from, size_t len)
{
	if (!icrc) {
		memcpy(to, from, len);
		return;
	}
	if (crc_icrc_by_folding(icrc, to, from, len))
		return;
	if (crc_sparse && !crc_shash) {
		icrc->state = roan_crc32_shiftxor_copy(roan_icrc_finish(icrc), to, from, len);
		return;
	}
	memcpy(to, from, len);
	icrc->state = roan_crc32(roan_icrc_finish(icrc), to, len);
}

const char *roan_crc_name(void)
{
	if (crc_bits)
		return crc_bits == 512 ? "roan-vpclmul-512" : "roan-vpclmul-256";
	if (crc_shash)
		return crypto_tfm_alg_driver_name(crypto_shash_tfm(crc_shash));
	return crc_sparse ? "roan-sparse" : "crc32_le";
}

static bool crc_shash_usable(struct crypto_shash *tfm, const u8 *buf)
{
	static const u16 lengths[] = { 128, 129, 255, 1024, 1027, CRC_PROBE - 3 };
	int i;

	if (crypto_shash_descsize(tfm) != sizeof(u32))
		return false;
	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		if (crc_by_shash(tfm, ~0u - i, buf + i % 3, lengths[i]) != crc32_le(~0u - i, buf + i % 3, lengths[i]))
			return false;
	return true;
}

/* Returns ns of the fastest of CRC_ROUNDS rounds with the method selected now. */
static u64 crc_time(const u8 *buf)
{
	u64 best = U64_MAX;
	u32 crc = ~0u;
	int i, k;

	for (i = 0; i < CRC_ROUNDS; i++) {
		u64 start = ktime_get_ns();

		for (k = 0; k < CRC_TIMES; k++)
			crc = roan_crc32(crc, buf, CRC_PROBE);
		OPTIMIZER_HIDE_VAR(crc);
		best = min(best, ktime_get_ns() - start);
	}
	return best;
}

/* Selects crc32_le() or shift/xor, whichever is faster, and returns its time in ns. */
static u64 crc_choose_plain(const u8 *buf)
{
	u64 plain, sparse;

	crc_sparse = false;
	plain = crc_time(buf);
	crc_sparse = true;
	sparse = crc_time(buf);
	crc_sparse = sparse < plain;
	return min(plain, sparse);
}

/* Selects the crypto API's CRC if it takes less than @best ns. Returns the time of the method selected. */
static u64 crc_choose_shash(const u8 *buf, u64 best)
{
	struct crypto_shash *tfm = crypto_alloc_shash("crc32", 0, 0);
	u64 took = U64_MAX;

	if (IS_ERR(tfm))
		return best;
	if (crc_shash_usable(tfm, buf)) {
		crc_shash = tfm;
		took = crc_time(buf);
	}
	if (took < best)
		return took;
	crc_shash = NULL;
	crypto_free_shash(tfm);
	return best;
}

/* Selects folding only if it is an eighth faster than @best ns: otherwise prefer the kernel's maintained code. */
static void crc_choose_folding(const u8 *buf, u64 best)
{
	static const u32 widths[] = { 256, 512 };
	u32 chosen = 0;
	u64 took;
	int i;

	best -= best / 8;
	for (i = 0; i < ARRAY_SIZE(widths); i++) {
		if (!roan_crc_fpu_possible(widths[i]))
			continue;
		crc_bits = widths[i];
		took = crc_time(buf);
		if (took >= best)
			continue;
		best = took;
		chosen = widths[i];
	}
	crc_bits = chosen;
}

int roan_crc_init(void)
{
	u8 *buf;
	int i;

	buf = kmalloc(CRC_PROBE, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	for (i = 0; i < CRC_PROBE; i++)
		buf[i] = i * 167 + (i >> 8);
	crc_bits = 0;
	crc_choose_folding(buf, crc_choose_shash(buf, crc_choose_plain(buf)));
	kfree(buf);
	return 0;
}

void roan_crc_exit(void)
{
	if (crc_shash)
		crypto_free_shash(crc_shash);
	crc_shash = NULL;
}
