// SPDX-License-Identifier: GPL-2.0
/*
 * Checked copies of driver data (udata) of verbs, by the rules of the RDMA core that uverbs_robust_udata promises:
 * input that is too short, or longer with bytes that are not 0, is refused; a response is cut or filled with zeros.
 * Older kernels lack the core's helpers (ib_copy_validate_udata_in(), ib_respond_udata()).
 */
#include <linux/uaccess.h>
#include "base/base.h"

/* The input from byte @from on, which this kernel does not know: -EINVAL if a byte is not 0; -EFAULT. */
static int udata_check_zero(const struct ib_udata *udata, size_t from)
{
	int zero;

	if (udata->inlen <= from)
		return 0;
	zero = check_zeroed_user(udata->inbuf + from, udata->inlen - from);
	return zero > 0 ? 0 : zero ?: -EINVAL;
}

/*
 * The first version of the struct has @first_size bytes. An older provider does not know the fields behind: they are 0.
 * A request longer than @size comes from a newer provider: accepted if the fields that this kernel does not know are 0.
 */
int roan_udata_copy_in(struct ib_udata *udata, void *req, size_t size, size_t first_size)
{
	int err;

	if (udata->inlen < first_size)
		return -EINVAL;
	err = udata_check_zero(udata, size);
	if (err)
		return err;
	memset(req, 0, size);
	return ib_copy_from_udata(req, udata, min(size, udata->inlen)) ? -EFAULT : 0;
}

/*
 * The response of an older provider is shorter: it gets the fields that it knows. That of a newer one is longer: it
 * gets zeros for the fields that this kernel does not know.
 */
int roan_resp_out(void __user *to, size_t room, const void *resp, size_t size)
{
	size = min(size, room);
	if (size && copy_to_user(to, resp, size))
		return -EFAULT;
	return room > size && clear_user(to + size, room - size) ? -EFAULT : 0;
}

/*
 * If the core cannot copy its own response after a verb has created an object, it calls the verb that destroys the
 * object with the udata of the creation. The program may have changed or unmapped its buffers by then, and the destroy
 * must not fail. So no input is left once it is checked, and no room for a response once it is written.
 */

/*
 * For verbs that take no driver data. A newer provider may pass fields that this kernel does not know; refuse them
 * unless they are 0.
 */
int roan_udata_no_input(struct ib_udata *udata)
{
	int err;

	if (!udata)
		return 0;
	err = udata_check_zero(udata, 0);
	if (!err)
		udata->inlen = 0;
	return err;
}

/* For verbs without driver data. A newer provider that expects a response gets zeros. */
int roan_udata_none(struct ib_udata *udata)
{
	return roan_udata_no_input(udata) ?: roan_udata_out(udata, NULL, 0);
}

/* No udata: a kernel consumer. */
int roan_udata_out(struct ib_udata *udata, const void *resp, size_t size)
{
	int err;

	if (!udata)
		return 0;
	err = roan_resp_out(udata->outbuf, udata->outlen, resp, size);
	if (!err)
		udata->outlen = 0;
	return err;
}
