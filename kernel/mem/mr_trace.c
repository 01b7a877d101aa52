// SPDX-License-Identifier: GPL-2.0
/* The tracepoint of registrations. A file of its own, as the KUnit module links mr.o but no tracepoints. */
#include "base/base.h"
#include "base/trace.h"
#include "mem/mem.h"

void roan_mr_trace(const struct roan_mr *mr, int err)
{
	trace_roan_mr_reg(to_roan_dev(mr->ib.device), err ? 0 : mr->key.key, mr->kind, mr->ib.iova, mr->length,
			  mr->access, err);
}
