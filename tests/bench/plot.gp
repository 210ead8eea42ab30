# SPDX-License-Identifier: MIT OR GPL-2.0-only
# Draws what cache_bench wrote: gnuplot -e "csv='cache_bench.csv'; svg='cache_bench.svg'" plot.gp
# One panel a scenario: ns per pair against the number of owners, both logarithmic; medians.

set terminal svg size 1560,720 dynamic noenhanced font 'sans-serif,15' background rgb 'white'
set output svg
set datafile separator comma
set datafile missing NaN
set logscale xy
set grid xtics ytics lc rgb '#dddddd' lt 1
set border 3
set tics nomirror out
set xlabel 'owners'
set xrange [0.8:26000]
set yrange [0.2:1500]
set xtics ('1' 1, '10' 10, '100' 100, '1,000' 1000, '10,000' 10000)
set ytics ('0.2' 0.2, '0.5' 0.5, '1' 1, '2' 2, '5' 5, '10' 10, '20' 20, '50' 50, '100' 100, '200' 200, '500' 500, '1,000' 1000)
unset key

rivals = 'ours_inline ours_extern ours_mm_cid ours_atomic thread_local thread_batch locked_7 locked_1 shared_atomic atomic_tree_2 atomic_tree_3'
labels = '"ours, inlined" "ours, called" "ours, by mm_cid" "ours, atomic engine" "thread-local counters" "thread-local batches" "locked stock of 7" "locked stock of 1" "one shared atomic" "atomic tree, 2 levels" "atomic tree, 3 levels"'
colors = '#0b5fa5 #0b5fa5 #56a5dd #8a63b8 #777777 #777777 #c2410c #e9965a #1a7f4b #b8860b #8b1a1a'
points = '7 6 4 9 1 2 5 4 13 8 10'
dashes = '1 2 3 1 1 2 1 2 1 1 2'

median(scenario, rival) = (strcol(1) eq scenario && strcol(3) eq rival) ? column(6) : NaN

set multiplot
panel(i) = 0.02 + 0.27 * i
do for [i = 0:2] {
	scenario = word('one_cpu two_cpus cross', i + 1)
	set title word('"one CPU" "two CPUs at once, the same owners" "consume on one CPU, refill on the other"', i + 1)
	if (i == 0) { set ylabel 'ns per consume and refill' offset 1.5,0 } else { unset ylabel }
	set lmargin at screen panel(i) + 0.05
	set rmargin at screen panel(i) + 0.26
	set tmargin at screen 0.93
	set bmargin at screen 0.11
	plot for [k = 1:words(rivals)] csv skip 1 \
		using 2:(median(scenario, word(rivals, k))) \
		with linespoints lw (k <= 2 ? 3 : 1.8) ps 0.8 pt int(word(points, k)) \
		dt int(word(dashes, k)) lc rgb word(colors, k) notitle
}

# The legend, a panel of its own.
unset title
unset border
unset tics
unset xlabel
unset ylabel
unset grid
unset logscale
set key at screen 0.995, 0.9 right top Left reverse samplen 3 spacing 1.5 width -2
set lmargin at screen 0.84
set rmargin at screen 0.995
set xrange [0:1]
set yrange [0:1]
plot for [k = 1:words(rivals)] NaN with linespoints lw (k <= 2 ? 3 : 1.8) ps 0.8 \
	pt int(word(points, k)) dt int(word(dashes, k)) lc rgb word(colors, k) title word(labels, k)
unset multiplot
