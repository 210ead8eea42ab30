# SPDX-License-Identifier: MIT OR GPL-2.0-only
#
# single_step.gdb - run by single_step.sh, which sets $most_steps.
set pagination off
set confirm off
set print thread-events off
set $steps = 0
break stepping_begins
run
while $pc != (unsigned long)stepping_ends && $steps < $most_steps
	stepi
	set $steps = $steps + 1
end
printf "took %d steps, %d hits\n", $steps, stepped_hits
continue
