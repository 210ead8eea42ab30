/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * kernel/percpu.h - part of kernel.h: variables of which each CPU has its own.
 *
 * The variables of one program or shared object stand together in a section of their own, which is
 * only ever read: the image that each CPU's copy begins with. A copy is at the same distance from
 * the image for all of them, so a name, or its address, leads to that of any CPU. Copies begin at
 * multiples of 128 bytes, and live as long as the process.
 */
#ifndef PCPCHARGE_KERNEL_PERCPU_H
#define PCPCHARGE_KERNEL_PERCPU_H

#ifndef PCPCHARGE_KERNEL_H
#error "include <pcpcharge/kernel.h>"
#endif

/* One program or shared object. */
struct pcpc_kernel_module {
	char *image, *first; /* the section; the copy of CPU 0 */
	size_t size, stride; /* of the section; from one CPU's copy to the next */
	struct pcpc_kernel_module *next;
	struct pcpc_kernel_block *blocks; /* what alloc_percpu() has given, behind the copies */
};

/** pcpc_kernel_add_module: give each CPU a copy of a section. Called before main() by every file
 * that includes kernel.h; all but the first call for a module do nothing. */
PCPC_API void pcpc_kernel_add_module(struct pcpc_kernel_module *module, char *image, size_t size);

/** pcpc_kernel_drop_module: it is about to be unloaded; called likewise. Its copies stay. */
PCPC_API void pcpc_kernel_drop_module(struct pcpc_kernel_module *module);

/** pcpc_kernel_alloc: zeroed memory for each CPU, to be translated like a variable; NULL: there are
 * 32 KiB a CPU for it, or align is above 128. Tasks only. */
PCPC_API void *pcpc_kernel_alloc(struct pcpc_kernel_module *module, size_t size, size_t align);
PCPC_API void pcpc_kernel_free(struct pcpc_kernel_module *module, void *pointer);

/* One a module: all files of it mean the same, and no other module does. */
__attribute__((weak, visibility("hidden"))) struct pcpc_kernel_module pcpc_kernel_this_module;

#define PCPC_KERNEL_SECTION "pcpc_percpu"
extern char __start_pcpc_percpu[] __attribute__((weak, visibility("hidden")));
extern char __stop_pcpc_percpu[] __attribute__((weak, visibility("hidden")));

static void __attribute__((constructor(101))) pcpc_kernel_begin(void)
{
	pcpc_kernel_add_module(&pcpc_kernel_this_module, __start_pcpc_percpu,
			       (size_t)(__stop_pcpc_percpu - __start_pcpc_percpu));
}

static void __attribute__((destructor(101))) pcpc_kernel_end(void)
{
	pcpc_kernel_drop_module(&pcpc_kernel_this_module);
}

/* A variable belongs to one module, and only that can reach it. So one that is neither static nor
 * declared by this, and is in two modules, must not be in the dynamic symbols of either. */
#define DECLARE_PER_CPU(type, name)                         \
	extern __attribute__((section(PCPC_KERNEL_SECTION), \
			      visibility("hidden"))) __typeof__(type) name
#define DEFINE_PER_CPU(type, name) \
	__attribute__((section(PCPC_KERNEL_SECTION))) __typeof__(type) name
/* Both at multiples of 128 bytes, on every CPU: the hardware fetches lines in pairs. */
#define DEFINE_PER_CPU_ALIGNED(type, name) DEFINE_PER_CPU(type, name) __attribute__((aligned(128)))
#define DEFINE_PER_CPU_SHARED_ALIGNED(type, name) DEFINE_PER_CPU_ALIGNED(type, name)
#define DECLARE_PER_CPU_ALIGNED(type, name) \
	DECLARE_PER_CPU(type, name) __attribute__((aligned(128)))

static inline void *pcpc_kernel_translate(const void *pointer, unsigned int cpu)
{
	const struct pcpc_kernel_module *module = &pcpc_kernel_this_module;

	/* By numbers: the image and the copies are not one object. */
	return (void *)((uintptr_t)pointer - (uintptr_t)module->image + (uintptr_t)module->first +
			cpu * module->stride);
}

#define per_cpu_ptr(pointer, cpu) \
	((__typeof__(*(pointer)) *)pcpc_kernel_translate((pointer), (unsigned int)(cpu)))
#define per_cpu(name, cpu) (*per_cpu_ptr(&(name), cpu))
#define this_cpu_ptr(pointer) per_cpu_ptr(pointer, pcpc_kernel_cpu())
#define raw_cpu_ptr(pointer) this_cpu_ptr(pointer)
#define get_cpu_ptr(pointer)           \
	({                             \
		preempt_disable();     \
		this_cpu_ptr(pointer); \
	})
#define put_cpu_ptr(pointer) preempt_enable()
#define get_cpu_var(name) (*get_cpu_ptr(&(name)))
#define put_cpu_var(name) preempt_enable()

/* Whole, wherever the thread is by now: atomic, for another one may be there too. No order. */
#define this_cpu_read(name) __atomic_load_n(this_cpu_ptr(&(name)), __ATOMIC_RELAXED)
#define this_cpu_write(name, value) \
	__atomic_store_n(this_cpu_ptr(&(name)), (value), __ATOMIC_RELAXED)
#define this_cpu_add(name, value) \
	((void)__atomic_fetch_add(this_cpu_ptr(&(name)), (value), __ATOMIC_RELAXED))
#define this_cpu_sub(name, value) \
	((void)__atomic_fetch_sub(this_cpu_ptr(&(name)), (value), __ATOMIC_RELAXED))
#define this_cpu_inc(name) this_cpu_add(name, 1)
#define this_cpu_dec(name) this_cpu_sub(name, 1)
#define this_cpu_add_return(name, value) \
	__atomic_add_fetch(this_cpu_ptr(&(name)), (value), __ATOMIC_RELAXED)
#define this_cpu_sub_return(name, value) \
	__atomic_sub_fetch(this_cpu_ptr(&(name)), (value), __ATOMIC_RELAXED)
#define this_cpu_inc_return(name) this_cpu_add_return(name, 1)
#define this_cpu_dec_return(name) this_cpu_sub_return(name, 1)
#define this_cpu_and(name, value) \
	((void)__atomic_fetch_and(this_cpu_ptr(&(name)), (value), __ATOMIC_RELAXED))
#define this_cpu_or(name, value) \
	((void)__atomic_fetch_or(this_cpu_ptr(&(name)), (value), __ATOMIC_RELAXED))
#define this_cpu_xchg(name, value) \
	__atomic_exchange_n(this_cpu_ptr(&(name)), (value), __ATOMIC_RELAXED)
#define this_cpu_cmpxchg(name, expected, value) \
	cmpxchg_relaxed(this_cpu_ptr(&(name)), (expected), (value))
#define this_cpu_try_cmpxchg(name, expected, value) \
	try_cmpxchg_relaxed(this_cpu_ptr(&(name)), (expected), (value))
#define __this_cpu_read(name) this_cpu_read(name)
#define __this_cpu_write(name, value) this_cpu_write(name, value)
#define __this_cpu_add(name, value) this_cpu_add(name, value)
#define __this_cpu_sub(name, value) this_cpu_sub(name, value)
#define __this_cpu_inc(name) this_cpu_inc(name)
#define __this_cpu_dec(name) this_cpu_dec(name)
#define __this_cpu_add_return(name, value) this_cpu_add_return(name, value)
#define __this_cpu_sub_return(name, value) this_cpu_sub_return(name, value)
#define __this_cpu_inc_return(name) this_cpu_inc_return(name)
#define __this_cpu_dec_return(name) this_cpu_dec_return(name)
#define __this_cpu_xchg(name, value) this_cpu_xchg(name, value)
#define __this_cpu_cmpxchg(name, expected, value) this_cpu_cmpxchg(name, expected, value)
#define raw_cpu_read(name) this_cpu_read(name)
#define raw_cpu_write(name, value) this_cpu_write(name, value)
#define raw_cpu_add(name, value) this_cpu_add(name, value)
#define raw_cpu_inc(name) this_cpu_inc(name)
#define raw_cpu_dec(name) this_cpu_dec(name)

#define alloc_percpu(type)                                                             \
	((__typeof__(type) *)pcpc_kernel_alloc(&pcpc_kernel_this_module, sizeof(type), \
					       __alignof__(type)))

static inline void free_percpu(void *pointer)
{
	pcpc_kernel_free(&pcpc_kernel_this_module, pointer);
}

#endif
