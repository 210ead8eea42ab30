# SPDX-License-Identifier: MIT OR GPL-2.0-only
# plot.gp - the CSV of cache_bench as a picture: ns a pair against owners, a panel for each scenario.
# Called as gnuplot -e "csv='...'; svg='...'" plot.gp
set terminal svg size 1500,620 font 'sans,13' background '#ffffff'
set output svg
set datafile separator ','
set logscale xy
set xrange [0.8:30000]
set yrange [0.4:2000]
set xlabel 'owners, chosen at random'
set ylabel 'ns for a consume and a refill, median' offset 1.5
set grid xtics ytics lc rgb '#dddddd'
set key off
rivals = 'ours_inline ours_extern ours_atomic thread_local thread_batch locked_7 locked_1 shared_atomic atomic_tree_2 atomic_tree_3'
colours = '#b01020 #e0405a #f0a0a8 #909090 #404040 #1060b0 #60a8e0 #207040 #60a040 #b8a020'
labels = 'ours,~inlined ours,~called ours,~atomic~engine thread-local~counters thread-local~batches locked~stock~of~7 locked~stock~of~1 one~shared~atomic atomic~tree,~2~levels atomic~tree,~3~levels'
tilde(text) = system(sprintf("printf '%%s' '%s' | tr '~' ' '", text))
scenarios = system(sprintf("tail -n +2 '%s' | cut -d, -f1 | awk '!seen[$0]++' | tr ' \n' '~ '", csv))
set multiplot layout 1,words(scenarios) margins 0.065,0.86,0.12,0.92 spacing 0.045
do for [s = 1:words(scenarios)] {
	set title system(sprintf("printf '%%s' '%s' | tr '~_' '  '", word(scenarios, s)))
	if (s > 1) { unset ylabel }
	if (s == words(scenarios)) { set key outside right center samplen 2 spacing 1.3 }
	plot for [r = 1:words(rivals)] \
		sprintf("< awk -F, '$1 == \"%s\" && $3 == \"%s\"' '%s'", tilde(word(scenarios, s)), word(rivals, r), csv) \
		using 2:6 with linespoints lw 2 pt 7 ps 0.5 lc rgb word(colours, r) title tilde(word(labels, r))
}
unset multiplot
