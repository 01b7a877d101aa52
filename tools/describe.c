// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Prints build/describe.json: the parameters of cc_param, the counters and the histograms of the module, from the lists
 * that the module itself is built from. tools/roan_describe.py reads it. `make describe` builds and runs this program
 * on the machine that builds, not on the one that runs the module.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* In place of kernel/core/core_env.h: what the headers below need for their declarations. */
#define ROAN_CORE_ENV_H
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#define READ_ONCE(x)	(x)

#include "core/cc/params.h"
#include "core/flow/pfc_rules.h"
#include "base/counters.h"
#include "base/latency.h"

static void string(const char *key, const char *text, const char *end)
{
	printf("\"%s\": \"", key);
	for (; *text; text++)
		printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	printf("\"%s", end);
}

static void entry(const char *group, const char *name, const char *unit, const char *meaning)
{
	static const char *last;

	printf("%s\n\t{", last && last == group ? "," : "");
	last = group;
	string("name", name, ", ");
	string("unit", unit, ", ");
	string("meaning", meaning, "");
}

static void param(const char *group, const char *name, const char *unit, u32 min, u32 max, u32 dcqcn, u32 others,
		  const char *meaning)
{
	entry("parameters", name, unit, meaning);
	printf(", \"group\": \"%s\", \"min\": %u, \"max\": %u, \"dcqcn\": %u, \"others\": %u}", group, min, max, dcqcn, others);
}

int main(void)
{
	printf("{\n\"parameters\": [");
#define X(name, unit, min, max, def, meaning)	param("device", #name, unit, min, max, def, def, meaning);
	ROAN_CC_DEVICE_PARAMS(X)
#undef X
#define X(name, unit, min, max, def, meaning)	param("pfc", #name, unit, min, max, def, def, meaning);
	ROAN_PFC_PARAMS(X)
#undef X
#define X(name, unit, min, max, paper, mlx, meaning)	param("cc", #name, unit, min, max, paper, mlx, meaning);
	ROAN_CC_PARAMS(X)
#undef X
	printf("\n],\n\"counters\": [");
#define X(name, unit, meaning)	entry("counters", #name, unit, meaning); printf("}");
	ROAN_COUNTERS(X)
#undef X
	printf("\n],\n\"latencies\": [");
#define X(name, meaning)	entry("latencies", #name, "ns", meaning); printf("}");
	ROAN_LATENCIES(X)
#undef X
	printf("\n]\n}\n");
	return ferror(stdout) || fflush(stdout);
}
