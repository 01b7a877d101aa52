/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The transmit budget of a softirq round (base/deferred.h), counted in skbs: a train counts as one if the device
 * segments it, else as many as it has packets. Does not resume sending: the sender defers what exceeds the budget.
 * Softirqs off.
 */
#ifndef ROAN_TX_BUDGET_H
#define ROAN_TX_BUDGET_H

#include "base/deferred.h"
#include "tx/gso.h"

static inline u32 roan_tx_budget_skbs(const struct roan_train *t)
{
	return t->sw_gso ? t->n : 1;
}

static inline void roan_tx_budget_charge(const struct roan_train *t)
{
	__this_cpu_add(roan_tx_budget_used, roan_tx_budget_skbs(t));
}

/* The same as roan_tx_budget_exhausted(), for when @t has been transmitted. */
static inline bool roan_tx_budget_exhausted_after(const struct roan_train *t)
{
	return __this_cpu_read(roan_tx_budget_used) + (t->skb ? roan_tx_budget_skbs(t) : 0) >= ROAN_TX_BUDGET;
}

#endif /* ROAN_TX_BUDGET_H */
