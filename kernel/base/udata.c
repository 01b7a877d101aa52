// SPDX-License-Identifier: GPL-2.0
/* How driver data of verbs goes in and out: what is too short, too long or not zero is refused. */
#include "base/base.h"

/*
 * A shorter request comes from a provider that is older than the struct's first version, which does not exist; a longer
 * one from a newer provider, which may pass what we do not know as long as it is zero.
 */
int roan_udata_in(struct ib_udata *udata, void *req, size_t size)
{
	if (udata->inlen < size)
		return -EINVAL;
	if (udata->inlen > size && !ib_is_udata_cleared(udata, size, udata->inlen - size))
		return -EINVAL;
	return ib_copy_from_udata(req, udata, size) ? -EFAULT : 0;
}

/* For verbs that take no driver data: what a newer provider wants of us and we do not know must not pass unheard. */
int roan_udata_none(struct ib_udata *udata)
{
	if (!udata || !udata->inlen || ib_is_udata_cleared(udata, 0, udata->inlen))
		return 0;
	return -EINVAL;
}

/* No udata: a kernel consumer. No room at all: whoever calls the verb does not want the answer. */
int roan_udata_out(struct ib_udata *udata, const void *resp, size_t size)
{
	if (!udata || !udata->outlen)
		return 0;
	if (udata->outlen < size)
		return -ENOSPC;
	return ib_copy_to_udata(udata, (void *)resp, size) ? -EFAULT : 0;
}
