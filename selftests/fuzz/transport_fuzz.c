// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes requester and responder together, in the simulator (selftests/unit/sim.c). It draws its choices from the fuzz
 * bytes, and pseudo-random ones after the last byte. The result must be the model's.
 */
#include "sim.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

void sim_failed(void)
{
	abort();
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct sim sim;

	memset(&sim, 0, offsetof(struct sim, flights));
	sim.random = 1;
	sim.input = data;
	sim.input_left = size;
	sim_run(&sim);
	return 0;
}
