// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Which slots of a queue may be written, while some requests have CQEs and others none. Run by `make check`. */
#include "../roan.h"
#include "expect.h"

/* More than 2^31 requests without a CQE lie between the last polled CQE and the next one. */
static void space__after_many_requests_without_cqe(void)
{
	struct roan_ring_ctl ctl = { .kernel.index = 0x90000000 };
	struct roan_wq wq = { .ring.ctl = &ctl, .max_wr = 4, .cqe_frees = true, .free_until = 0x90000000 - 2 };

	EXPECT(roan_wq_has_space(&wq, 0x90000000 + 2));
	EXPECT(wq.free_until == 0x90000000);
	ctl.kernel.index = ctl.kernel.cqe_until = 0x90000000 + 4;
	EXPECT(!roan_wq_has_space(&wq, 0x90000000 + 4));	/* until the CQE is polled */
	ring_set_polled(&wq.polled, ctl.kernel.cqe_until);
	EXPECT(roan_wq_has_space(&wq, 0x90000000 + 4));
	EXPECT(wq.free_until == 0x90000000 + 4);
}

int main(void)
{
	space__after_many_requests_without_cqe();
	printf("%s\n", failures ? "FAIL space" : "ok space");
	return failures != 0;
}
