/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * kernel_private.h - what the files behind kernel.h know of each other.
 */
#ifndef PCPCHARGE_KERNEL_PRIVATE_H
#define PCPCHARGE_KERNEL_PRIVATE_H

/* kernel.c */
void pcpc_kernel_take_off(unsigned int cpu);
void pcpc_kernel_bring_back(unsigned int cpu);
void pcpc_kernel_forget_others(void);

/* kernel_percpu.c */
void pcpc_kernel_copy_images(unsigned int nr_cpus);
void pcpc_kernel_percpu_fork(bool before);

#endif
