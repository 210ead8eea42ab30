// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * quota_module.c - examples/kernel-style as a module: plays its script when it is loaded. guest.sh
 * compares what that tells with what the program tells.
 */
#include <linux/module.h>

/* In a kernel this is the kernel's own. */
#include <pcpcharge/memcontrol.h>

#include "quota.h"

static int __init start(void)
{
	int err = quota_init();

	if (err)
		return err;
	err = quota_script();
	if (err)
		quota_exit();
	return err;
}

static void __exit stop(void)
{
	quota_exit();
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("libpcpcharge's example in the kernel's style");
MODULE_LICENSE("Dual MIT/GPL");
