// SPDX-License-Identifier: GPL-2.0
/*
 * Checked copies of driver data (udata) of verbs. Input that is too short, or longer with bytes that are not 0, is
 * refused.
 */
#include "base/base.h"

/*
 * A request shorter than @size matches no version of the struct. A longer one comes from a newer provider: accepted if
 * the fields that this kernel does not know are 0.
 */
int roan_udata_in(struct ib_udata *udata, void *req, size_t size)
{
	if (udata->inlen < size)
		return -EINVAL;
	if (udata->inlen > size && !ib_is_udata_cleared(udata, size, udata->inlen - size))
		return -EINVAL;
	return ib_copy_from_udata(req, udata, size) ? -EFAULT : 0;
}

/*
 * For verbs without driver data. A newer provider may pass fields that this kernel does not know; refuse them unless
 * they are 0.
 */
int roan_udata_none(struct ib_udata *udata)
{
	if (!udata || !udata->inlen || ib_is_udata_cleared(udata, 0, udata->inlen))
		return 0;
	return -EINVAL;
}

/* No udata: a kernel consumer. No output buffer: the caller does not need the response. */
int roan_udata_out(struct ib_udata *udata, const void *resp, size_t size)
{
	if (!udata || !udata->outlen)
		return 0;
	if (udata->outlen < size)
		return -ENOSPC;
	return ib_copy_to_udata(udata, (void *)resp, size) ? -EFAULT : 0;
}
