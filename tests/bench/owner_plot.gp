# SPDX-License-Identifier: MIT OR GPL-2.0-only
# owner_plot.gp - the CSV of owner_bench as a picture: ns a pair against owners, a panel for each
# scenario and depth. Called as gnuplot -e "csv='...'; svg='...'" owner_plot.gp
set terminal svg size 1300,1050 font 'sans,13' background '#ffffff'
set output svg
set datafile separator ','
set logscale xy
set xrange [0.8:30000]
set yrange [0.4:3000]
set grid xtics ytics lc rgb '#dddddd'
rivals = 'owners owners_half owners_atomic thread_local thread_batch locked_7 locked_1 shared_atomic atomic_tree'
colours = '#b01020 #e08020 #f0a0a8 #909090 #404040 #1060b0 #60a8e0 #207040 #60a040'
labels = 'owners owners,~half~the~slots owners,~atomic~engine thread-local~counters thread-local~batches locked~stock~of~7 locked~stock~of~1 one~shared~atomic atomic~tree'
scenarios = 'one_cpu two_cpus'
depths = '1 6'
plain(text) = system(sprintf("printf '%%s' '%s' | tr '~_' '  '", text))
set multiplot layout 2,2 margins 0.065,0.82,0.07,0.96 spacing 0.05,0.08
do for [s = 1:2] {
	do for [d = 1:2] {
		set title sprintf("%s, depth %s", plain(word(scenarios, s)), word(depths, d))
		if (d == 1) { set ylabel 'ns for a charge and an uncharge, median' offset 1.5 } else { unset ylabel }
		if (s == 2) { set xlabel 'owners, chosen at random' }
		if (s == 1 && d == 2) { set key outside right top samplen 2 spacing 1.3 } else { set key off }
		plot for [r = 1:words(rivals)] \
			sprintf("< awk -F, '$1 == \"%s\" && $3 == \"%s\" && $NF == %s' '%s'", word(scenarios, s), word(rivals, r), word(depths, d), csv) \
			using 2:6 with linespoints lw 2 pt 7 ps 0.5 lc rgb word(colours, r) title plain(word(labels, r))
	}
}
unset multiplot
