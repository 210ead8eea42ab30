#!/bin/busybox sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# shellcheck shell=dash
# guest_init.sh - the first process of the guest: loads a module for each line of /plan, which has its
# name and its parameters, and powers off. Verdicts are the modules' own lines on the console.
busybox=/bin/busybox
$busybox mkdir -p /proc /sys
$busybox mount -t proc none /proc
$busybox mount -t sysfs none /sys
while read -r module parameters; do
	# shellcheck disable=SC2086 # a list of parameters
	$busybox insmod "/$module.ko" $parameters || echo "$module: could not be loaded: $parameters"
	$busybox rmmod "$module"
done </plan
echo "guest: end of plan"
$busybox poweroff -f
