// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * kernel_percpu.c - the per-CPU memory behind kernel.h.
 *
 * A module (a program, a shared object) has its variables in one section, the image. For each CPU a
 * copy of it stands in one mapping, with room behind it for what is allocated at run time.
 */
#define _GNU_SOURCE
#include <pcpcharge/kernel.h>

#include <pthread.h>

#include "kernel_private.h"
#include "percpu.h"

#define LINE 128
#define ROOM (32 * 1024)   /* for allocations, in each CPU's copy */
#define SKEW (LINE + 4096) /* so that copies do not all begin at one place of a page */

/* What alloc_percpu() has given, in the order of their places. */
struct pcpc_kernel_block {
	struct pcpc_kernel_block *next;
	size_t offset, size;
};

static pthread_mutex_t modules_mutex = PTHREAD_MUTEX_INITIALIZER; /* innermost */
static struct pcpc_kernel_module *modules;
static unsigned int nr_copies; /* CPUs whose copies are filled */

static size_t round_to(size_t size, size_t align)
{
	return (size + align - 1) / align * align;
}

static void copy_image(const struct pcpc_kernel_module *module, unsigned int cpu)
{
	if (module->size)
		memcpy(module->first + cpu * module->stride, module->image, module->size);
}

static bool known(const struct pcpc_kernel_module *module)
{
	const struct pcpc_kernel_module *other;

	for (other = modules; other; other = other->next)
		if (other == module)
			return true;
	return false;
}

static void add_module(struct pcpc_kernel_module *module, char *image, size_t size)
{
	unsigned int cpu;

	module->image = size ? image : (char *)module;
	module->size = size;
	module->stride = round_to(round_to(size, LINE) + ROOM, 4096) + SKEW;
	/* Pages are touched for CPUs that there are. */
	module->first = pcpc_map(module->stride * PCPC_KERNEL_CPUS);
	/* Before main(): as a kernel that cannot boot. */
	BUG_ON(!module->first);
	if (!nr_copies)
		nr_copies = nr_cpu_ids;
	for (cpu = 0; cpu < nr_copies; cpu++)
		copy_image(module, cpu);
	module->next = modules;
	modules = module;
}

void pcpc_kernel_add_module(struct pcpc_kernel_module *module, char *image, size_t size)
{
	pthread_mutex_lock(&modules_mutex);
	if (!known(module))
		add_module(module, image, size);
	pthread_mutex_unlock(&modules_mutex);
}

/* Its memory stays: at the end of a process other threads may still be at work. */
void pcpc_kernel_drop_module(struct pcpc_kernel_module *module)
{
	struct pcpc_kernel_module **link;

	pthread_mutex_lock(&modules_mutex);
	for (link = &modules; *link; link = &(*link)->next)
		if (*link == module) {
			*link = module->next;
			break;
		}
	pthread_mutex_unlock(&modules_mutex);
}

void pcpc_kernel_copy_images(unsigned int nr_cpus)
{
	struct pcpc_kernel_module *module;
	unsigned int cpu;

	pthread_mutex_lock(&modules_mutex);
	for (cpu = nr_copies; cpu < nr_cpus; cpu++)
		for (module = modules; module; module = module->next)
			copy_image(module, cpu);
	nr_copies = nr_copies < nr_cpus ? nr_cpus : nr_copies;
	pthread_mutex_unlock(&modules_mutex);
}

/* The first gap that is wide enough; where it begins, or 0. */
static struct pcpc_kernel_block **find_gap(struct pcpc_kernel_module *module, size_t size,
					   size_t align, size_t *ret_offset)
{
	size_t begin = round_to(module->size, LINE), end = begin + ROOM;
	struct pcpc_kernel_block **link;

	for (link = &module->blocks; *link; link = &(*link)->next) {
		begin = round_to(begin, align);
		if (begin + size <= (*link)->offset)
			break;
		begin = (*link)->offset + (*link)->size;
	}
	*ret_offset = round_to(begin, align);
	return *ret_offset + size <= (*link ? (*link)->offset : end) ? link : NULL;
}

void *pcpc_kernel_alloc(struct pcpc_kernel_module *module, size_t size, size_t align)
{
	struct pcpc_kernel_block *block, **link;
	unsigned int cpu;
	size_t offset;

	if (!size || size > ROOM || align > LINE)
		return NULL;
	block = malloc(sizeof(*block));
	if (!block)
		return NULL;
	pthread_mutex_lock(&modules_mutex);
	link = find_gap(module, size, align, &offset);
	if (link) {
		*block = (struct pcpc_kernel_block){ *link, offset, size };
		*link = block;
		for (cpu = 0; cpu < PCPC_KERNEL_CPUS && cpu < nr_copies; cpu++)
			memset(module->first + cpu * module->stride + offset, 0, size);
	}
	pthread_mutex_unlock(&modules_mutex);
	if (link)
		return (void *)((uintptr_t)module->image + offset);
	free(block);
	return NULL;
}

void pcpc_kernel_free(struct pcpc_kernel_module *module, void *pointer)
{
	struct pcpc_kernel_block **link, *block = NULL;

	pthread_mutex_lock(&modules_mutex);
	for (link = &module->blocks; pointer && *link; link = &(*link)->next)
		if ((uintptr_t)module->image + (*link)->offset == (uintptr_t)pointer) {
			block = *link;
			*link = block->next;
			break;
		}
	pthread_mutex_unlock(&modules_mutex);
	free(block);
}

void pcpc_kernel_percpu_fork(bool before)
{
	if (before)
		pthread_mutex_lock(&modules_mutex);
	else
		pthread_mutex_unlock(&modules_mutex);
}
