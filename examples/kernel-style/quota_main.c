// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * quota_main.c - the quotas of this folder as a program. As a module they are in tests/kernel.
 */
#include "quota.h"

int main(void)
{
	int err = quota_init();

	if (!err)
		err = quota_script();
	quota_exit();
	return err ? 1 : 0;
}
