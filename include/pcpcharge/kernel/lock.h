/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * kernel/lock.h - part of kernel.h: local locks, spinlocks, mutexes, RCU (that of liburcu-bp).
 */
#ifndef PCPCHARGE_KERNEL_LOCK_H
#define PCPCHARGE_KERNEL_LOCK_H

#ifndef PCPCHARGE_KERNEL_H
#error "include <pcpcharge/kernel.h>"
#endif

#include <pthread.h>
#include <urcu-bp.h>

/* -- local locks: one a CPU, which only an interrupt of that CPU can find taken -- */

typedef struct {
	bool acquired; /* by the context that is at that CPU, or by one that it interrupted */
} local_lock_t;
typedef local_lock_t local_trylock_t;

#define INIT_LOCAL_LOCK(name) \
	{                     \
		false         \
	}
#define INIT_LOCAL_TRYLOCK(name) INIT_LOCAL_LOCK(name)
#define local_lock_init(lock) (this_cpu_write((lock)->acquired, false))
#define local_trylock_init(lock) local_lock_init(lock)

/* With preemption disabled; a nested context comes and goes between two instructions, so a plain
 * byte tells. */
static inline bool pcpc_kernel_local_take(local_lock_t *lock)
{
	if (READ_ONCE(lock->acquired))
		return false;
	WRITE_ONCE(lock->acquired, true);
	barrier();
	return true;
}

static inline void pcpc_kernel_local_release(local_lock_t *lock)
{
	WARN_ON_ONCE(!lock->acquired);
	barrier();
	WRITE_ONCE(lock->acquired, false);
}

#define local_trylock(lock)                                                  \
	({                                                                   \
		bool local_trylock_;                                         \
		preempt_disable();                                           \
		local_trylock_ = pcpc_kernel_local_take(this_cpu_ptr(lock)); \
		if (!local_trylock_)                                         \
			preempt_enable();                                    \
		local_trylock_;                                              \
	})
#define local_lock(lock)                                                   \
	do {                                                               \
		preempt_disable();                                         \
		WARN_ON_ONCE(!in_task());                                  \
		WARN_ON_ONCE(!pcpc_kernel_local_take(this_cpu_ptr(lock))); \
	} while (0)
#define local_unlock(lock)                                     \
	do {                                                   \
		pcpc_kernel_local_release(this_cpu_ptr(lock)); \
		preempt_enable();                              \
	} while (0)
#define local_lock_irqsave(lock, flags)                                    \
	do {                                                               \
		local_irq_save(flags);                                     \
		WARN_ON_ONCE(!pcpc_kernel_local_take(this_cpu_ptr(lock))); \
	} while (0)
#define local_trylock_irqsave(lock, flags)                                   \
	({                                                                   \
		bool local_trylock_;                                         \
		local_irq_save(flags);                                       \
		local_trylock_ = pcpc_kernel_local_take(this_cpu_ptr(lock)); \
		if (!local_trylock_)                                         \
			local_irq_restore(flags);                            \
		local_trylock_;                                              \
	})
#define local_unlock_irqrestore(lock, flags)                   \
	do {                                                   \
		pcpc_kernel_local_release(this_cpu_ptr(lock)); \
		local_irq_restore(flags);                      \
	} while (0)

/* -- spinlocks: preemption is off while one is held -- */

typedef struct {
	int taken;
} spinlock_t;

#define __SPIN_LOCK_UNLOCKED(name) \
	{                          \
		0                  \
	}
#define DEFINE_SPINLOCK(name) spinlock_t name = __SPIN_LOCK_UNLOCKED(name)

/** pcpc_kernel_spin: take a lock that is 0 to 1, and wait for that. Signal-safe, if no handler
 * interrupts its holder and wants it. Acquire; released by a store of 0 with release. */
PCPC_API void pcpc_kernel_spin(int *taken);

static inline void spin_lock_init(spinlock_t *lock)
{
	lock->taken = 0;
}

static inline void spin_lock(spinlock_t *lock)
{
	preempt_disable();
	pcpc_kernel_spin(&lock->taken);
}

static inline bool spin_trylock(spinlock_t *lock)
{
	preempt_disable();
	if (!__atomic_exchange_n(&lock->taken, 1, __ATOMIC_ACQUIRE))
		return true;
	preempt_enable();
	return false;
}

static inline void spin_unlock(spinlock_t *lock)
{
	smp_store_release(&lock->taken, 0);
	preempt_enable();
}

#define spin_lock_irqsave(lock, flags)            \
	do {                                      \
		local_irq_save(flags);            \
		pcpc_kernel_spin(&(lock)->taken); \
	} while (0)
#define spin_unlock_irqrestore(lock, flags)           \
	do {                                          \
		smp_store_release(&(lock)->taken, 0); \
		local_irq_restore(flags);             \
	} while (0)

/* -- mutexes: tasks only -- */

struct mutex {
	pthread_mutex_t mutex;
};

#define DEFINE_MUTEX(name) struct mutex name = { PTHREAD_MUTEX_INITIALIZER }

static inline void mutex_init(struct mutex *mutex)
{
	pthread_mutex_init(&mutex->mutex, NULL);
}

static inline void mutex_lock(struct mutex *mutex)
{
	pthread_mutex_lock(&mutex->mutex);
}

static inline bool mutex_trylock(struct mutex *mutex)
{
	return pthread_mutex_trylock(&mutex->mutex) == 0;
}

static inline void mutex_unlock(struct mutex *mutex)
{
	pthread_mutex_unlock(&mutex->mutex);
}

/* -- RCU; rcu_read_lock(), synchronize_rcu() and the rest are liburcu's -- */

#define RCU_INIT_POINTER(pointer, value) WRITE_ONCE(pointer, value)
#define rcu_access_pointer(pointer) READ_ONCE(pointer)
#define rcu_dereference_raw(pointer) rcu_dereference(pointer)
#define rcu_dereference_check(pointer, condition) rcu_dereference(pointer)
#define rcu_dereference_protected(pointer, condition) READ_ONCE(pointer)

/** pcpc_kernel_free_rcu: kfree() pointer after a grace period; head is a part of what it points
 * at. Tasks only. After a fork as call_rcu() of liburcu. */
PCPC_API void pcpc_kernel_free_rcu(struct rcu_head *head, void *pointer);

#define kfree_rcu(pointer, member)                                     \
	do {                                                           \
		__typeof__(pointer) freed_ = (pointer);                \
		if (freed_)                                            \
			pcpc_kernel_free_rcu(&freed_->member, freed_); \
	} while (0)

#endif
