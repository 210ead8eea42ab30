// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * secure_mode.c - a setuid program: what its caller put into the environment must not count.
 *
 * Runs a copy of itself, once as it is and once setuid, by another user.
 */
#define _GNU_SOURCE
#include "fault_support.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY 65534

static char copy_path[] = "/tmp/pcpcharge-secure-XXXXXX";

/* The environment asks for an engine that does not exist. */
static int be_asked_for_nonsense(void)
{
	struct pcpc_cache *cache = NULL;
	int r = pcpc_cache_create(NULL, &cache);

	MUST(getenv("PCPC_ENGINE"));
	if (!getauxval(AT_SECURE))
		return r == -EINVAL ? 1 : 2;
	pcpc_cache_destroy(cache);
	return r == 0 ? 3 : 4;
}

static bool copy_self(mode_t mode)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = mkstemp(copy_path);
	struct stat status;
	off_t done = 0;

	MUST(from >= 0 && to >= 0);
	MUST(fstat(from, &status) == 0);
	while (done < status.st_size)
		MUST(sendfile(to, from, &done, (size_t)(status.st_size - done)) > 0);
	MUST(fchmod(to, mode) == 0);
	close(from);
	return close(to) == 0;
}

static int run_copy(mode_t mode)
{
	char name[] = "fault", role[] = "role", *arguments[] = { name, role, NULL };
	pid_t child;
	int status;

	MUST(copy_self(mode));
	child = fork();
	if (child == 0) {
		setenv("PCPC_ENGINE", "nonsense", 1);
		if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
			_exit(FAULT_SKIP);
		execv(copy_path, arguments);
		_exit(FAULT_SKIP);
	}
	status = status_of(child);
	unlink(copy_path);
	return status;
}

/* Contract of pcpc_cache_create(): -EINVAL if the environment names neither engine. */
START_TEST(ordinary_program_heeds_its_environment)
{
	int status;

	SKIP_IF(geteuid() != 0, "needs root");
	status = run_copy(0755);
	SKIP_IF(status == FAULT_SKIP, "cannot run a program in /tmp as another user");
	ck_assert_int_eq(status, 1);
}
END_TEST

/* secure_getenv() in choose_engine(): a caller without rights must not choose for one that has. */
START_TEST(setuid_program_does_not)
{
	int status;

	SKIP_IF(geteuid() != 0, "needs root");
	status = run_copy(04755);
	SKIP_IF(status == FAULT_SKIP, "cannot run a program in /tmp as another user");
	SKIP_IF(status == 1, "no setuid programs in /tmp");
	ck_assert_int_eq(status, 3);
}
END_TEST

int main(int argc, char **argv)
{
	TCase *tests;

	(void)argv;
	if (argc > 1)
		return be_asked_for_nonsense();
	unsetenv("PCPC_ENGINE");
	tests = tcase_create("secure mode");
	tcase_add_test(tests, ordinary_program_heeds_its_environment);
	tcase_add_test(tests, setuid_program_does_not);
	return fault_run("fault", tests);
}
