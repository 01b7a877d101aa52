/* SPDX-License-Identifier: GPL-2.0 */
/* CRC-32 computed bit by bit, as defined: the reference for the suites of the fast implementations. */
#ifndef CRC_BITS_H
#define CRC_BITS_H

static inline u32 bit_by_bit(u32 crc, const u8 *p, size_t len)
{
	int i;

	while (len--) {
		crc ^= *p++;
		for (i = 0; i < 8; i++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
	}
	return crc;
}

#endif
