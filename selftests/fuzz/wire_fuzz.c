// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes roan_wire_parse() with arbitrary bytes. An accepted packet must parse to the same values after it is built
 * again.
 */
#include "core/transport/wire.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* Byte 8 of the BTH as it must be built again: two bits are reserved, and a version of a single bit is no version. */
static u8 bth_flags_again(u8 b)
{
	u8 version = b & 0x0f;

	return (b & 0xc0) | (version & (version - 1) ? version : 0);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	size_t have = min_t(size_t, size, ROAN_MAX_HEADERS);
	u8 *head = malloc(have ? have : 1);	/* exact size, so that ASan reports a read past the end */
	u8 again[ROAN_MAX_HEADERS], twice[ROAN_MAX_HEADERS];
	struct roan_pkt a, b;

	if (!head)
		return 0;
	memcpy(head, data, have);
	if (roan_wire_parse(head, size, &a) == ROAN_PARSE_OK) {
		size_t n = roan_wire_build(again, &a);

		if (n != a.payload_off || n + a.payload_len + a.pad + ROAN_ICRC_LEN != size)
			abort();
		/* All but reserved bits is unchanged: opcode, flags, P_Key, QPN, AckReq, version, PSN. */
		if (memcmp(again, head, 4) || memcmp(again + 5, head + 5, 3) || again[8] != bth_flags_again(head[8]) ||
		    memcmp(again + 9, head + 9, 3))
			abort();
		if (roan_wire_parse(again, size, &b) != ROAN_PARSE_OK)
			abort();
		if (roan_wire_build(twice, &b) != n || memcmp(again, twice, n))
			abort();
	}
	free(head);
	return 0;
}
