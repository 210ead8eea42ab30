// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * test_owner_config.c - configurations and settings, good and bad: sizes, ranges, flags, and that
 * what is refused changes nothing.
 */
#define _GNU_SOURCE
#include <sys/resource.h>

#include "owner_support.h"

/* Where ret_* points before a call that must leave it alone. */
static char elsewhere[64];
#define untouched_domain ((struct pcpc_domain *)(void *)elsewhere)
#define untouched_owner ((struct pcpc_owner *)(void *)elsewhere)

static int try_domain(const struct pcpc_domain_config *config)
{
	struct pcpc_domain *made = untouched_domain;
	int r = pcpc_domain_create(config, &made);

	if (r == 0) {
		ck_assert_ptr_ne(made, untouched_domain);
		ck_assert_ptr_nonnull(pcpc_domain_root(made));
		ck_assert_int_eq(pcpc_domain_destroy(made), 0);
	} else {
		ck_assert_ptr_eq(made, untouched_domain);
	}
	return r;
}

static int try_owner(const struct pcpc_owner_config *config)
{
	struct pcpc_owner *owner = untouched_owner;
	int r = pcpc_owner_create(root, config, &owner);

	if (r == 0) {
		ck_assert_ptr_ne(owner, untouched_owner);
		ck_assert_int_eq(pcpc_owner_destroy(owner), 0);
	} else {
		ck_assert_ptr_eq(owner, untouched_owner);
	}
	return r;
}

static struct pcpc_domain_config plain(void)
{
	return domain_config(PCPC_ENGINE_AUTO, 64);
}

static struct pcpc_owner_config plain_owner(void)
{
	return (struct pcpc_owner_config){ .size = sizeof(struct pcpc_owner_config) };
}

/* owner.h: "batch must be given", 1..PCPC_COUNT_MAX or PCPC_BATCH_NONE. */
START_TEST(a_domain_needs_a_batch_in_range)
{
	static const uint32_t good[] = {
		1, 64, 65536, PCPC_COUNT_MAX - 1, PCPC_COUNT_MAX, PCPC_BATCH_NONE
	};
	static const uint32_t bad[] = { 0, PCPC_COUNT_MAX + 1, PCPC_BATCH_NONE - 1, 0x80000000u };
	struct pcpc_domain_config config = plain();
	unsigned int i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		config.batch = good[i];
		ck_assert_int_eq(try_domain(&config), 0);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		config.batch = bad[i];
		ck_assert_int_eq(try_domain(&config), -EINVAL);
	}
}
END_TEST

/* owner.h: "delta_batch: 1..PCPC_DELTA_MAX; 0: max(64, 2 x CPUs)". */
START_TEST(the_delta_batch_has_a_range)
{
	struct pcpc_domain_config config = plain();

	config.delta_batch = PCPC_DELTA_MAX;
	ck_assert_int_eq(try_domain(&config), 0);
	config.delta_batch = 1;
	ck_assert_int_eq(try_domain(&config), 0);
	config.delta_batch = (uint32_t)PCPC_DELTA_MAX + 1;
	ck_assert_int_eq(try_domain(&config), -EINVAL);
	config.delta_batch = UINT32_MAX;
	ck_assert_int_eq(try_domain(&config), -EINVAL);
	config.delta_batch = 0;
	ck_assert(create_domain(&config));
	ck_assert_uint_eq(domain->delta_batch, domain->nr_cpus > 32 ? 2 * domain->nr_cpus : 64);
}
END_TEST

/* owner.h: "coupled_item not below nr_items". */
START_TEST(the_coupled_item_is_one_of_the_items)
{
	static const struct pcpc_item items[] = { { "a", "b" }, { "c", "d" } };
	struct pcpc_domain_config config = plain();

	config.items = items;
	config.nr_items = 2;
	ck_assert_int_eq(try_domain(&config), 0);
	config.coupled_item = 1;
	ck_assert_int_eq(try_domain(&config), 0);
	config.coupled_item = 2;
	ck_assert_int_eq(try_domain(&config), -EINVAL);
	config.coupled_item = UINT32_MAX;
	ck_assert_int_eq(try_domain(&config), -EINVAL);
	config.coupled_item = 0;
	config.items = NULL;
	ck_assert_int_eq(try_domain(&config), -EINVAL);
}
END_TEST

/* owner.h: "unknown flags, and what pcpc_cache_create() refuses". */
START_TEST(unknown_flags_engines_and_indices_are_refused)
{
	const unsigned int known =
		PCPC_DOMAIN_NO_FORK_HOOKS | PCPC_DOMAIN_KERNEL | PCPC_DOMAIN_NO_EVENTFD;
	struct pcpc_domain_config config = plain();
	unsigned int bit;

	for (bit = 0; bit < 32; bit++) {
		config.flags = 1u << bit;
		ck_assert_int_eq(try_domain(&config), config.flags & known ? 0 : -EINVAL);
	}
	config = plain();
	config.engine = (enum pcpc_engine)3;
	ck_assert_int_eq(try_domain(&config), -EINVAL);
	config.engine = (enum pcpc_engine) - 1;
	ck_assert_int_eq(try_domain(&config), -EINVAL);
	config = plain();
	config.index = (enum pcpc_index)3;
	ck_assert_int_eq(try_domain(&config), -EINVAL);
	config = plain();
	config.stocks_per_cpu = (1u << 18) + 1;
	ck_assert_int_eq(try_domain(&config), -EINVAL);
	config.stocks_per_cpu = 3; /* rounded up */
	ck_assert_int_eq(try_domain(&config), 0);
}
END_TEST

/* api.md: sizes grow with the library; habits 11. A larger one with nothing in what is not known.
 */
START_TEST(a_domain_configuration_of_another_size)
{
	struct {
		struct pcpc_domain_config config;
		unsigned char more[64];
	} wide = { .config = plain() };
	struct pcpc_domain_config config = plain();
	size_t size;

	for (size = 0; size < sizeof(config) - sizeof(void *); size++) {
		config.size = size;
		ck_assert_int_eq(try_domain(&config), -EINVAL);
	}
	wide.config.size = sizeof(wide);
	ck_assert_int_eq(try_domain(&wide.config), 0);
	wide.more[63] = 1;
	ck_assert_int_eq(try_domain(&wide.config), -EINVAL);
	wide.more[63] = 0;
	wide.more[0] = 1;
	ck_assert_int_eq(try_domain(&wide.config), -EINVAL);
	wide.config.size = sizeof(struct pcpc_domain_config);
	ck_assert_int_eq(try_domain(&wide.config), 0);
	ck_assert_int_eq(try_domain(NULL), -EINVAL);
	ck_assert_int_eq(pcpc_domain_create(&config, NULL), -EINVAL);
}
END_TEST

/* owner.h: -EMFILE; "with ret_* untouched on failure", and nothing left open. */
START_TEST(a_domain_without_a_descriptor_to_be_had_is_not_made)
{
	struct pcpc_domain_config config = plain();
	struct rlimit limit, saved;
	int fd;

	ck_assert_int_eq(try_domain(&config), 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &saved), 0);
	fd = dup(0);
	ck_assert_int_ge(fd, 0);
	close(fd);
	limit = saved;
	limit.rlim_cur = (rlim_t)fd;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(try_domain(&config), -EMFILE);
	ck_assert_int_eq(try_domain(&config), -EMFILE);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &saved), 0);
	ck_assert_int_eq(try_domain(&config), 0);
	ck_assert_int_eq(dup(0), fd);
}
END_TEST

/* Many domains, one after the other: descriptors, keys and memory come back. */
START_TEST(domains_come_and_go_and_leave_nothing)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)_i, 64);
	struct pcpc_domain *many[40];
	int i, before, after;

	if (!create_domain(&config))
		return;
	before = dup(0);
	close(before);
	for (i = 0; i < 2000; i++)
		ck_assert_int_eq(try_domain(&config), 0);
	for (i = 0; i < 40; i++)
		ck_assert_int_eq(pcpc_domain_create(&config, &many[i]), 0);
	for (i = 0; i < 40; i++)
		ck_assert_int_eq(pcpc_domain_destroy(many[(i * 7) % 40]), 0);
	after = dup(0);
	close(after);
	ck_assert_int_eq(before, after);
}
END_TEST

/* api.md: "PCPC_ENGINE=atomic|rseq in the environment", section 6. */
START_TEST(the_environment_chooses_the_engine)
{
	struct pcpc_domain_config config = plain();

	ck_assert_int_eq(setenv("PCPC_ENGINE", "atomic", 1), 0);
	ck_assert(create_domain(&config));
	ck_assert_int_eq(pcpc_cache_engine(domain->cache), PCPC_ENGINE_ATOMIC);
	ck_assert_int_eq(setenv("PCPC_ENGINE", "neither", 1), 0);
	ck_assert_int_eq(try_domain(&config), -EINVAL);
}
END_TEST

/* owner.h, pcpc_owner_create(): ranges of max, high and batch. */
START_TEST(an_owner_configuration_out_of_range_is_refused)
{
	struct pcpc_owner_config config = plain_owner();

	if (!open_domain(_i, 64, 0))
		return;
	config.max = PCPC_UNLIMITED;
	config.high = PCPC_UNLIMITED;
	config.batch = PCPC_COUNT_MAX;
	ck_assert_int_eq(try_owner(&config), 0);
	config.max = config.high = 1;
	config.batch = PCPC_BATCH_NONE;
	ck_assert_int_eq(try_owner(&config), 0);
	config = plain_owner();
	config.max = PCPC_UNLIMITED + 1;
	ck_assert_int_eq(try_owner(&config), -EINVAL);
	config.max = UINT64_MAX;
	ck_assert_int_eq(try_owner(&config), -EINVAL);
	config = plain_owner();
	config.high = PCPC_UNLIMITED + 1;
	ck_assert_int_eq(try_owner(&config), -EINVAL);
	config = plain_owner();
	config.batch = PCPC_COUNT_MAX + 1;
	ck_assert_int_eq(try_owner(&config), -EINVAL);
	config.batch = PCPC_BATCH_NONE - 1;
	ck_assert_int_eq(try_owner(&config), -EINVAL);
	config = plain_owner();
	ck_assert_int_eq(pcpc_owner_create(NULL, &config, &(struct pcpc_owner *){ NULL }), -EINVAL);
	ck_assert_int_eq(pcpc_owner_create(root, &config, NULL), -EINVAL);
	/* nothing was taken by what was refused */
	pcpc_domain_poll(domain);
	ck_assert_uint_eq(pcpc_owner_id(child_of(root)), 2);
	ck_assert_uint_eq(domain->nr_owners, 2);
}
END_TEST

START_TEST(an_owner_configuration_of_another_size)
{
	struct {
		struct pcpc_owner_config config;
		unsigned char more[8];
	} wide = { .config = plain_owner() };
	struct pcpc_owner_config config = plain_owner();
	size_t size;

	if (!open_domain(_i, 64, 0))
		return;
	for (size = 0; size < sizeof(config); size++) {
		config.size = size;
		ck_assert_int_eq(try_owner(&config), -EINVAL);
	}
	wide.config.size = sizeof(wide);
	ck_assert_int_eq(try_owner(&wide.config), 0);
	wide.more[7] = 1;
	ck_assert_int_eq(try_owner(&wide.config), -EINVAL);
	wide.config.size = sizeof(struct pcpc_owner_config);
	ck_assert_int_eq(try_owner(&wide.config), 0);
}
END_TEST

/* owner.h: set_max 0..PCPC_UNLIMITED, set_high likewise, set_batch; what is refused changes
 * nothing, and 0 is a limit of zero here. */
START_TEST(settings_out_of_range_change_nothing)
{
	struct pcpc_owner *owner;

	if (!open_domain(_i, 64, 0))
		return;
	owner = make_owner(root, 500, 16);
	ck_assert_int_eq(pcpc_owner_set_max(owner, PCPC_UNLIMITED + 1), -EINVAL);
	ck_assert_int_eq(pcpc_owner_set_max(owner, UINT64_MAX), -EINVAL);
	ck_assert_uint_eq(pcpc_owner_max(owner), 500);
	ck_assert_int_eq(pcpc_owner_set_high(owner, 77), 0);
	ck_assert_int_eq(pcpc_owner_set_high(owner, PCPC_UNLIMITED + 1), -EINVAL);
	ck_assert_uint_eq(pcpc_owner_high(owner), 77);
	ck_assert_int_eq(pcpc_owner_set_batch(owner, PCPC_COUNT_MAX + 1), -EINVAL);
	ck_assert_int_eq(pcpc_owner_set_batch(owner, PCPC_BATCH_NONE - 1), -EINVAL);
	ck_assert_uint_eq(atomic_load(&books_of(owner)->own_batch), 16);
	ck_assert_int_eq(pcpc_owner_set_max(owner, 0), 0);
	ck_assert_uint_eq(pcpc_owner_max(owner), 0);
	ck_assert_int_eq(pcpc_charge(owner, 1), -EDQUOT);
	ck_assert_int_eq(pcpc_charge(owner, 0), 0);
	ck_assert_int_eq(pcpc_owner_set_high(owner, 0), 0);
	ck_assert_uint_eq(pcpc_owner_high(owner), 0);
	ck_assert_int_eq(pcpc_owner_set_max(owner, PCPC_UNLIMITED), 0);
	ck_assert_int_eq(pcpc_owner_set_high(owner, PCPC_UNLIMITED), 0);
	charge(owner, 1);
	uncharge(owner, 1);
	/* the root takes settings as well */
	ck_assert_int_eq(pcpc_owner_set_max(root, 10), 0);
	ck_assert_int_eq(pcpc_charge(owner, 11), -EDQUOT);
}
END_TEST

/* Section 7: hot line of 64 bytes, at most 512 bytes an owner, groups 128 bytes apart. */
START_TEST(hot_lines_stand_in_one_dense_array_by_id)
{
	struct pcpc_owner *first, *second;
	struct pcpc_books *books;

	if (!open_domain(_i, 64, 0))
		return;
	first = child_of(root);
	second = child_of(root);
	books = books_of(first);
	ck_assert_int_eq((char *)second - (char *)first, 64);
	ck_assert_uint_eq((uintptr_t)first % 64, 0);
	ck_assert_uint_le(sizeof(struct pcpc_owner) + sizeof(struct pcpc_books), 512);
	/* what misses write, and what they only read */
	ck_assert_uint_ge(offsetof(struct pcpc_books, max),
			  offsetof(struct pcpc_books, events) + sizeof(books->events));
	ck_assert_uint_eq((uintptr_t)books % 128, 0);
	ck_assert_uint_eq(offsetof(struct pcpc_books, max) % 128, 0);
	ck_assert_ptr_ne(first->word, second->word);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("owner config");
	TCase *tests = unit_case(suite, "config");

	tcase_add_checked_fixture(tests, NULL, close_domain);
	tcase_add_test(tests, a_domain_needs_a_batch_in_range);
	tcase_add_test(tests, the_delta_batch_has_a_range);
	tcase_add_test(tests, the_coupled_item_is_one_of_the_items);
	tcase_add_test(tests, unknown_flags_engines_and_indices_are_refused);
	tcase_add_test(tests, a_domain_configuration_of_another_size);
	tcase_add_test(tests, a_domain_without_a_descriptor_to_be_had_is_not_made);
	by_each_engine(tests, domains_come_and_go_and_leave_nothing);
	tcase_add_test(tests, the_environment_chooses_the_engine);
	by_each_engine(tests, an_owner_configuration_out_of_range_is_refused);
	by_each_engine(tests, an_owner_configuration_of_another_size);
	by_each_engine(tests, settings_out_of_range_change_nothing);
	by_each_engine(tests, hot_lines_stand_in_one_dense_array_by_id);
	return unit_run(suite);
}
