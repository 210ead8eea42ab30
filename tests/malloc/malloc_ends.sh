#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# malloc_ends.sh LIBRARY EARLY NEXT PROGRAM - ends processes in every way, with a library beside ours that
# allocates before our constructor and frees after our destructor.
set -eu
library=$(realpath "$1") early=$2 next=$3 program=$4
if [ -n "$next" ] && LD_PRELOAD=$next /bin/true 2>&1 | grep -q .; then
	echo "no $next here"
	exit 77
fi
for way in return exit quick exec thread last; do
	LD_PRELOAD=$library:$early${next:+:$next} "$program" "$way" || {
		echo "ended by $way: status $?"
		exit 1
	}
done
