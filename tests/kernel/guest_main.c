// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * guest_main.c - the module pcpc_guest and its parameters. insmod returns when the run is over and
 * has told what came of it; guest.sh reads that from the console.
 */
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/random.h>

#include "guest.h"

static unsigned int twin;
module_param(twin, uint, 0444);
MODULE_PARM_DESC(twin, "what to leave out: 0 nothing, 1 commit, 2 insert, 3 death; see guest.h");

unsigned int guest_seconds = 5;
module_param_named(seconds, guest_seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "how long, without start and end");

unsigned int guest_seed;
module_param_named(seed, guest_seed, uint, 0444);
MODULE_PARM_DESC(seed, "of random numbers; 0: any");

enum guest_twin guest_twin;

static int __init start(void)
{
	if (twin > GUEST_DEATH)
		return -EINVAL;
	guest_twin = twin;
	if (!guest_seed)
		guest_seed = get_random_u32();
	return guest_run();
}

static void __exit stop(void)
{
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("libpcpcharge's stocks in a running kernel");
MODULE_LICENSE("Dual MIT/GPL");
