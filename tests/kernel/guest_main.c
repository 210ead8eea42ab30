// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * guest_main.c - the module pcpc_guest: its parameters, and which of its parts runs. insmod returns
 * when the part has run and has told what came of it; guest.sh reads that from the console.
 */
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/string.h>

#include "guest.h"

/* One more part is one more object in Kbuild and one more row here. It prints its verdict itself.
 */
static const struct {
	const char *name;
	int (*run)(void);
} parts[] = {
	{ "stocks", guest_run },
};

static char *part = "stocks";
module_param(part, charp, 0444);
MODULE_PARM_DESC(part, "what to run");

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
	unsigned int i;

	if (twin > GUEST_DEATH)
		return -EINVAL;
	guest_twin = twin;
	if (!guest_seed)
		guest_seed = get_random_u32();
	for (i = 0; i < ARRAY_SIZE(parts); i++)
		if (!strcmp(part, parts[i].name))
			return parts[i].run();
	return -EINVAL;
}

static void __exit stop(void)
{
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("libpcpcharge's stocks in a running kernel");
MODULE_LICENSE("Dual MIT/GPL");
