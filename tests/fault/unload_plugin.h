/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * unload_plugin.h - what unload.c calls in a plugin, by name.
 */
#ifndef UNLOAD_PLUGIN_H
#define UNLOAD_PLUGIN_H

#include <stdbool.h>

#define PLUGIN_EXPORT __attribute__((visibility("default")))

/* Makes the plugin's cache; 0 or negative errno. */
PLUGIN_EXPORT int plugin_open(bool *ret_rseq);

/* Consumes a unit of owner 1 if it can, and refills one, so many times; the last operation is a
 * refill. Returns how many consumes hit. */
PLUGIN_EXPORT unsigned int plugin_operate(unsigned int pairs);

/* Drains and frees it. */
PLUGIN_EXPORT int plugin_close(void);

#endif
