/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Environment of the pure core in a userspace build: replaces kernel/core/core_env.h and has its include guard. It must
 * be force-included (-include), because a quoted include would find the kernel's file first. Its size shows how much of
 * the kernel the core depends on: add only what a file of the core needs.
 */
#ifndef ROAN_CORE_ENV_H
#define ROAN_CORE_ENV_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <endian.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#define U8_MAX		UINT8_MAX
#define U16_MAX		UINT16_MAX
#define U32_MAX		UINT32_MAX
#define U64_MAX		UINT64_MAX
#define S16_MAX		INT16_MAX
#define S32_MAX		INT32_MAX
#define S64_MAX		INT64_MAX

#define NSEC_PER_USEC	1000L
#define USEC_PER_SEC	1000000L
#define NSEC_PER_MSEC	1000000L
#define NSEC_PER_SEC	1000000000L

#define BIT(n)		(1UL << (n))
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define __force
#define __maybe_unused	__attribute__((unused))
#define __aligned(n)	__attribute__((aligned(n)))
#define fallthrough	__attribute__((fallthrough))
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define static_assert	_Static_assert
#define BUILD_BUG_ON(c)	_Static_assert(!(c), #c)
#define data_race(x)	(x)
#define OPTIMIZER_HIDE_VAR(x)	__asm__("" : "+r" (x))
#define READ_ONCE(x)	(*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *)&(x) = (v))
#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))

#define min(a, b)	({ typeof(a) _a = (a); typeof(b) _b = (b); _a < _b ? _a : _b; })
#define max(a, b)	({ typeof(a) _a = (a); typeof(b) _b = (b); _a > _b ? _a : _b; })
#define min_t(t, a, b)	({ t _x = (a); t _y = (b); _x < _y ? _x : _y; })
#define max_t(t, a, b)	({ t _x = (a); t _y = (b); _x > _y ? _x : _y; })
#define min3(a, b, c)	min(min(a, b), c)
#define hweight32(w)	((u32)__builtin_popcount(w))
#define clamp(v, lo, hi) min(max(v, lo), hi)
#define clamp_t(t, v, lo, hi) min_t(t, max_t(t, v, lo), hi)
#define swap(a, b)	do { typeof(a) _t = (a); (a) = (b); (b) = _t; } while (0)
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define round_up(x, y)	((((x) - 1) | ((typeof(x))((y) - 1))) + 1)
#define is_power_of_2(n) ((n) && !((n) & ((n) - 1)))
#define lower_32_bits(n) ((u32)(n))
#define upper_32_bits(n) ((u32)((u64)(n) >> 32))

#define check_add_overflow(a, b, d) __builtin_add_overflow(a, b, d)
#define check_sub_overflow(a, b, d) __builtin_sub_overflow(a, b, d)
#define check_mul_overflow(a, b, d) __builtin_mul_overflow(a, b, d)

/* A kernel continues after a warning; here a warning aborts, so that no test passes with one. */
#define WARN_ON_ONCE(c)							\
	({								\
		bool _c = !!(c);					\
		if (_c) {						\
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #c);	\
			abort();					\
		}							\
		_c;							\
	})
#define WARN_ON(c)	WARN_ON_ONCE(c)
#define WARN_ONCE(c, ...) WARN_ON_ONCE(c)

#define cpu_to_be16(x)	((__be16)htobe16(x))
#define cpu_to_be32(x)	((__be32)htobe32(x))
#define cpu_to_be64(x)	((__be64)htobe64(x))
#define be16_to_cpu(x)	be16toh((u16)(x))
#define be32_to_cpu(x)	be32toh((u32)(x))
#define be64_to_cpu(x)	be64toh((u64)(x))

#define ROAN_UNALIGNED(bits, order)					\
static inline u##bits get_unaligned_##order##bits(const void *p)	\
{									\
	u##bits v;							\
									\
	memcpy(&v, p, sizeof(v));					\
	return order##bits##toh(v);					\
}									\
									\
static inline void put_unaligned_##order##bits(u##bits v, void *p)	\
{									\
	v = hto##order##bits(v);					\
	memcpy(p, &v, sizeof(v));					\
}
ROAN_UNALIGNED(16, be)
ROAN_UNALIGNED(32, be)
ROAN_UNALIGNED(64, be)
ROAN_UNALIGNED(16, le)
ROAN_UNALIGNED(32, le)
ROAN_UNALIGNED(64, le)

static inline u64 div_u64(u64 n, u32 d)
{
	return n / d;
}

static inline u64 div64_u64(u64 n, u64 d)
{
	return n / d;
}

static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 d)
{
	return (unsigned __int128)a * b / d;
}

static inline u64 mul_u64_u32_div(u64 a, u32 b, u32 d)
{
	return mul_u64_u64_div_u64(a, b, d);
}

static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	return (unsigned __int128)a * b >> shift;
}

#include <rdma/roan-abi.h>

u32 roan_crc32(u32 crc, const void *p, size_t len);

#endif /* ROAN_CORE_ENV_H */
