/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * observe_support.h - what the tests of reports share: owners with names, and a write function that
 * keeps the text.
 */
#ifndef PCPCHARGE_TESTS_OBSERVE_SUPPORT_H
#define PCPCHARGE_TESTS_OBSERVE_SUPPORT_H

#include <pcpcharge/observe.h>

#include "owner_support.h"

/* A report that was written, terminated. */
struct text {
	char *data;
	size_t length, room;
	unsigned int calls;
};

static inline int collect(const char *piece, size_t length, void *context)
{
	struct text *text = context;

	ck_assert_uint_ge(length, 1);
	if (text->length + length + 1 > text->room) {
		text->room = 2 * (text->length + length + 1);
		text->data = realloc(text->data, text->room);
		ck_assert_ptr_nonnull(text->data);
	}
	memcpy(text->data + text->length, piece, length);
	text->length += length;
	text->data[text->length] = '\0';
	text->calls++;
	return 0;
}

/* The whole report; the caller frees it. */
static inline char *report_of(enum pcpc_format format, const struct pcpc_report_config *config)
{
	struct text text = { 0 };

	ck_assert_int_eq(pcpc_domain_report_config(domain, format, config, collect, &text), 0);
	ck_assert_ptr_nonnull(text.data);
	ck_assert_uint_eq(strlen(text.data), text.length);
	return text.data;
}

static inline unsigned int occurrences(const char *text, const char *what)
{
	unsigned int count = 0;

	while ((text = strstr(text, what))) {
		count++;
		text += strlen(what);
	}
	return count;
}

#define assert_has(text, what) \
	ck_assert_msg(strstr(text, what) != NULL, "no \"%s\" in:\n%s", what, text)
#define assert_lacks(text, what) \
	ck_assert_msg(strstr(text, what) == NULL, "\"%s\" in:\n%s", what, text)

static inline struct pcpc_owner *named(struct pcpc_owner *parent, const char *name)
{
	const struct pcpc_owner_config config = { .size = sizeof(config), .name = name };
	struct pcpc_owner *owner = NULL;

	ck_assert_int_eq(pcpc_owner_create(parent, &config, &owner), 0);
	return owner;
}

/* With a usage that is exact: nothing is stocked. */
static inline struct pcpc_owner *using(struct pcpc_owner *parent, const char *name, uint64_t usage)
{
	const struct pcpc_owner_config config = { .size = sizeof(config),
						  .name = name,
						  .batch = PCPC_BATCH_NONE };
	struct pcpc_owner *owner = NULL;

	ck_assert_int_eq(pcpc_owner_create(parent, &config, &owner), 0);
	charge(owner, usage);
	return owner;
}

/* A domain whose root has the name and unit given, and that stocks nothing unless an owner has a
 * batch. */
static inline bool open_named(int engine, const char *name, const char *unit,
			      const struct pcpc_item *items, uint32_t nr_items)
{
	struct pcpc_domain_config config = domain_config((enum pcpc_engine)engine, PCPC_BATCH_NONE);

	config.name = name;
	config.unit = unit;
	config.items = items;
	config.nr_items = nr_items;
	return create_domain(&config) && unit_pin(0);
}

/* The number after a key, which must be there once. */
static inline uint64_t number_after(const char *text, const char *key)
{
	ck_assert_msg(occurrences(text, key) == 1, "%u x \"%s\" in:\n%s", occurrences(text, key),
		      key, text);
	return strtoull(strstr(text, key) + strlen(key), NULL, 10);
}

/* Without assertions, which allocate. */
static inline int count_pieces(const char *piece, size_t length, void *context)
{
	unsigned int *pieces = context;

	++*pieces;
	return piece && length ? 0 : -EPROTO;
}

/* 40 owners on three levels, some with long names: several pieces in every format. */
static inline bool open_bushy(int engine)
{
	static const struct pcpc_item items[] = { { "file", "bytes" }, { "maps", NULL } };
	char name[300];
	unsigned int i;

	if (!open_named(engine, "r", "bytes", items, 2))
		return false;
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	for (i = 0; i < 39; i++)
		(void)named(i < 20 ? root : owner_of(domain, 2 + i % 20), name + i * 7);
	return true;
}

/* After a report nobody has a reference that had none before. */
static inline bool has_no_reference(struct pcpc_owner *owner, unsigned int depth, void *context)
{
	uint32_t id, children = 0;

	(void)depth;
	(void)context;
	for (id = books_of(owner)->first_child; id; id = domain->books[id].next)
		children++;
	/* its creator's, one a child, and that of this walk */
	ck_assert_uint_eq(atomic_load(&books_of(owner)->refs), 1 + children + 1);
	return true;
}

static inline void assert_no_references(void)
{
	pcpc_owner_walk(root, has_no_reference, NULL);
}

#endif
