/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * pcpcharge_malloc.h - the domain of libpcpcharge-malloc.so, for programs that have tenants.
 *
 * Make owners below its root, and say with pcpc_set_active() for whom a thread works: what the
 * thread allocates from then on is charged to that owner. A program that is not linked with the
 * library, and may have it preloaded, declares the function weak.
 *
 * At a limit malloc() calls the functions of pcpc_owner_set_notify(), so those must not take a lock
 * that anybody holds while he allocates. It never calls those of pcpc_owner_set_reclaim().
 */
#ifndef PCPCHARGE_MALLOC_H
#define PCPCHARGE_MALLOC_H

#include <pcpcharge/base.h>

PCPC_BEGIN_DECLS

struct pcpc_domain;

/**
 * pcpc_malloc_domain: the domain that malloc() charges, in bytes; its root is the process.
 *
 * Returns NULL before the constructor of the library has run, after its destructor has, and where
 * the domain could not be made: then nothing is charged. The domain is never destroyed. Threads:
 * any. Signal-safe.
 */
PCPC_API struct pcpc_domain *pcpc_malloc_domain(void);

PCPC_END_DECLS

#endif
