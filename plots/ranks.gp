# Requested and reserved bytes of the ranks of a job, a strip for each.
# By hand: gnuplot -e "data = 'ranks.csv'; scripts = 'plots'" plots/ranks.gp > ranks.svg
load scripts.'/style.gp'
if (!exists("strip_count")) stats data using 'strip' nooutput; strip_count = int(STATS_max)
if (!exists("labels")) array labels[strip_count]; do for [i = 1:strip_count] { labels[i] = sprintf('strip %d', i) }
if (!exists("max_bytes")) stats data using 'reserved_bytes' nooutput; max_bytes = STATS_max
if (!exists("peaks")) array peaks[strip_count]; do for [i = 1:strip_count] { stats data using (column('strip') == i ? column('reserved_bytes') : NaN) nooutput; peaks[i] = STATS_max }
if (!exists("has_oom")) has_oom = 0
if (!exists("capacity_bytes")) capacity_bytes = 0; capacity_text = ''
if (!exists("x_max")) stats data using 'event' nooutput; x_max = STATS_max; x_min = STATS_min

x_unit = x_scale(0, x_max)
x(_) = column('event') / x_unit
# The first strip is on top; each is one high, with some room above the highest level.
base(i) = strip_count - i
share(bytes) = bytes / (1.1 * max_bytes)
is(kind, i) = strcol('kind') eq kind && column('strip') == i
at(kind, i) = is(kind, i) ? x(0) : NaN
level(kind, i, name) = is(kind, i) ? base(i) + share(column(name)) : NaN

set xlabel x_label(0, x_max)
set xrange [x_min / x_unit:x_max / x_unit]
set yrange [0:strip_count]
set border 1
unset grid
unset ytics
set ytics scale 0 nomirror noenhanced
set ytics ('' 0)
do for [i = 1:strip_count] { set ytics add (labels[i] base(i) + 0.5) }
# On the right the peak of what is reserved.
set y2range [0:strip_count]
set y2tics scale 0.6 nomirror
set y2tics ('' 0)
do for [i = 1:strip_count] { set y2tics add (sprintf('%.2f %s', peaks[i] / unit_bytes, unit) base(i) + share(peaks[i])) }

capacity_title = capacity_bytes > 0 ? 'capacity, '.capacity_text : ''
plot \
    for [i = 1:strip_count] data using (at('level', i)):(base(i)):(level('level', i, 'requested_bytes')) with filledcurves fillstyle solid fillcolor '#CFCFCF' title (i == 1 ? 'requested' : ''), \
    for [i = 1:strip_count] data using (x(0)):(level('level', i, 'reserved_bytes')) with lines linewidth 1.8 linecolor rgb colours[1] title (i == 1 ? 'reserved' : ''), \
    for [i = 1:strip_count] base(i) with lines linewidth 0.6 linecolor '#888888' notitle, \
    for [i = 1:capacity_bytes > 0 ? strip_count : 0] base(i) + share(capacity_bytes) with lines linewidth 1 linecolor '#222222' dashtype 2 title (i == 1 ? capacity_title : ''), \
    for [i = 1:strip_count] data using (x(0)):(level('oom', i, 'reserved_bytes')) with points pointtype 2 pointsize 1.3 linewidth 2.5 linecolor rgb colours[2] title (i == 1 && has_oom ? 'out of memory' : '')
