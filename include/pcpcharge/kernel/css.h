/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * kernel/css.h - part of kernel.h: references that end with a kill, and the part of a cgroup that
 * has one.
 */
#ifndef PCPCHARGE_KERNEL_CSS_H
#define PCPCHARGE_KERNEL_CSS_H

#ifndef PCPCHARGE_KERNEL_H
#error "include <pcpcharge/kernel.h>"
#endif

struct percpu_ref;
typedef void percpu_ref_func_t(struct percpu_ref *ref);

/* One counter: what the kernel keeps per CPU until the kill is not worth it here. */
struct percpu_ref {
	atomic_long_t count; /* and PCPC_KERNEL_REF_ALIVE, until the kill */
	bool dead;	     /* killed, once */
	percpu_ref_func_t *release;
};

/* So that nothing is released before the kill, however many references are put. */
#define PCPC_KERNEL_REF_ALIVE (LONG_MAX / 2)

/* One reference, which percpu_ref_kill() puts. flags and mask are for the kernel. Returns 0. */
static inline int percpu_ref_init(struct percpu_ref *ref, percpu_ref_func_t *release,
				  unsigned int flags, gfp_t mask)
{
	(void)flags;
	(void)mask;
	atomic_long_set(&ref->count, PCPC_KERNEL_REF_ALIVE + 1);
	ref->dead = false;
	ref->release = release;
	return 0;
}

static inline void percpu_ref_exit(struct percpu_ref *ref)
{
	(void)ref;
}

static inline void percpu_ref_get_many(struct percpu_ref *ref, unsigned long nr)
{
	atomic_long_add((long)nr, &ref->count);
}

static inline void percpu_ref_get(struct percpu_ref *ref)
{
	percpu_ref_get_many(ref, 1);
}

static inline bool percpu_ref_tryget(struct percpu_ref *ref)
{
	return atomic_long_inc_not_zero(&ref->count);
}

static inline bool percpu_ref_is_dying(struct percpu_ref *ref)
{
	return READ_ONCE(ref->dead);
}

static inline bool percpu_ref_tryget_live(struct percpu_ref *ref)
{
	return !percpu_ref_is_dying(ref) && percpu_ref_tryget(ref);
}

/* The last one releases. One too many is noticed if it was killed: it warns, and does nothing. */
static inline void percpu_ref_put_many(struct percpu_ref *ref, unsigned long nr)
{
	long left = atomic_long_sub_return((long)nr, &ref->count);

	if (left == 0)
		ref->release(ref);
	else
		WARN_ON_ONCE(left < 0);
}

static inline void percpu_ref_put(struct percpu_ref *ref)
{
	percpu_ref_put_many(ref, 1);
}

/* A second kill warns, and does nothing. */
static inline void percpu_ref_kill(struct percpu_ref *ref)
{
	if (WARN_ON_ONCE(xchg(&ref->dead, true)))
		return;
	percpu_ref_put_many(ref, PCPC_KERNEL_REF_ALIVE + 1);
}

static inline bool percpu_ref_is_zero(struct percpu_ref *ref)
{
	return atomic_long_read(&ref->count) == 0;
}

/* -- of a cgroup, what belongs to one controller -- */

struct cgroup_subsys_state {
	struct percpu_ref refcnt;
	struct cgroup_subsys_state *parent; /* constant; not referenced by this */
	void (*release)(struct cgroup_subsys_state *css);
};

static inline void pcpc_kernel_css_release(struct percpu_ref *ref)
{
	struct cgroup_subsys_state *css = container_of(ref, struct cgroup_subsys_state, refcnt);

	css->release(css);
}

/* What the cgroup core does for a new one, and for one that goes. release runs in whatever context
 * puts the last reference. */
static inline void pcpc_kernel_css_init(struct cgroup_subsys_state *css,
					struct cgroup_subsys_state *parent,
					void (*release)(struct cgroup_subsys_state *css))
{
	css->parent = parent;
	css->release = release;
	(void)percpu_ref_init(&css->refcnt, pcpc_kernel_css_release, 0, GFP_KERNEL);
}

static inline void pcpc_kernel_css_kill(struct cgroup_subsys_state *css)
{
	percpu_ref_kill(&css->refcnt);
}

static inline void css_get(struct cgroup_subsys_state *css)
{
	percpu_ref_get(&css->refcnt);
}

static inline void css_get_many(struct cgroup_subsys_state *css, unsigned int nr)
{
	percpu_ref_get_many(&css->refcnt, nr);
}

/* False: it is about to be released. */
static inline bool css_tryget(struct cgroup_subsys_state *css)
{
	return percpu_ref_tryget(&css->refcnt);
}

/* False: it was killed. */
static inline bool css_tryget_online(struct cgroup_subsys_state *css)
{
	return percpu_ref_tryget_live(&css->refcnt);
}

static inline bool css_is_dying(struct cgroup_subsys_state *css)
{
	return percpu_ref_is_dying(&css->refcnt);
}

static inline void css_put(struct cgroup_subsys_state *css)
{
	percpu_ref_put(&css->refcnt);
}

static inline void css_put_many(struct cgroup_subsys_state *css, unsigned int nr)
{
	percpu_ref_put_many(&css->refcnt, nr);
}

#endif
