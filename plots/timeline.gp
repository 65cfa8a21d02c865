# Requested, allocated and reserved bytes over events or time.
# By hand: gnuplot -e "data = 'timeline.csv'; scripts = 'plots'" plots/timeline.gp > timeline.svg
load scripts.'/style.gp'
if (!exists("policies")) stats data using 'series' nooutput; policy_count = int(STATS_max); array policies[policy_count + 1]; do for [i = 1:policy_count] { policies[i] = sprintf('policy %d', i) }
if (!exists("named_count")) named_count = policy_count < 8 ? policy_count : 8; array places[policy_count]; do for [i = 1:policy_count] { places[i] = i <= 8 ? i : 0 }
if (!exists("label_drops")) array label_drops[policy_count + 1]; do for [i = 1:policy_count + 1] { label_drops[i] = 100 * i - 10 }
if (!exists("is_by_time")) is_by_time = 0
if (!exists("has_recorded")) has_recorded = 0
if (!exists("packing_bytes")) stats data using (strcol('kind') eq 'bound' ? column('reserved_bytes') : 0) nooutput; packing_bytes = STATS_max; packing_text = sprintf('%.2f %s', packing_bytes / unit_bytes, unit)
if (!exists("capacity_bytes")) capacity_bytes = 0; capacity_text = ''
if (!exists("x_max")) stats data using (is_by_time ? column('time_ns') / 1e9 : column('event')) nooutput; x_max = STATS_max; x_min = STATS_min

x_unit = x_scale(is_by_time, x_max)
x(_) = (is_by_time ? column('time_ns') / 1e9 : column('event')) / x_unit
is(kind, i) = strcol('kind') eq kind && column('series') == i
level(kind, i, name) = is(kind, i) ? column(name) / unit_bytes : NaN
# Labels stay inside: to the right of points on the left, and the other way round.
on_left(_) = x(0) * x_unit < x_min + (x_max - x_min) * 0.6

set xlabel x_label(is_by_time, x_max)
set ylabel sprintf('memory (%s)', unit)
set xrange [x_min / x_unit:x_max / x_unit]
set yrange [0:*]
set offsets 0, 0, graph 0.04, 0

names(i) = policy_count == 1 ? policies[i].', reserved' : policies[i]
# Curves that are not drawn leave their title in an svg all the same.
others_title = policy_count > named_count ? sprintf('%d others', policy_count - named_count) : ''
packing_title = packing_bytes > 0 ? 'offline packing, '.packing_text : ''
capacity_title = capacity_bytes > 0 ? 'capacity, '.capacity_text : ''
plot \
    for [i = 1:!is_terminal] data using (x(0)):(level('demand', 0, 'requested_bytes')) with fillsteps fillstyle solid fillcolor '#CFCFCF' title (is_terminal ? '' : 'requested'), \
    for [i = 1:is_terminal] data using (x(0)):(level('demand', 0, 'requested_bytes')) with steps linecolor '#CFCFCF' title (is_terminal ? 'requested' : ''), \
    for [i = 1:policy_count == 1] data using (x(0)):(level('policy', i, 'allocated_bytes')) with steps linewidth 0.7 linecolor '#56B4E9' title 'allocated', \
    for [i = 1:policy_count] data using (x(0)):(is_grey(i) ? level('policy', i, 'reserved_bytes') : NaN) with steps linewidth width_of(i, 8) linecolor rgb ink_of(i) notitle, \
    for [i = 1:policy_count] data using (x(0)):(is_grey(i) ? NaN : level('policy', i, 'reserved_bytes')) with steps linewidth width_of(i, named_count) linecolor rgb ink_of(i) title (is_grey(i) ? '' : names(i)), \
    for [i = 1:policy_count > named_count] keyentry with lines linewidth 0.8 linecolor rgb '#C4C4C4' title others_title, \
    for [i = 1:has_recorded] data using (x(0)):(level('recorded', 0, 'reserved_bytes')) with steps linewidth 1.6 linecolor '#222222' dashtype 3 title 'reserved when recorded', \
    for [i = 1:packing_bytes > 0] packing_bytes / unit_bytes with lines linestyle 92 title packing_title, \
    for [i = 1:capacity_bytes > 0] capacity_bytes / unit_bytes with lines linewidth 1 linecolor '#222222' dashtype 2 title capacity_title, \
    for [i = 1:policy_count] data using (x(0)):(level('oom', i, 'reserved_bytes')) with points pointtype 2 pointsize 1.3 linewidth 2.5 linecolor rgb ink_of(i) notitle, \
    for [i = 1:policy_count] data using (x(0)):(on_left(0) && !is_grey(i) ? level('oom', i, 'reserved_bytes') : NaN):(strcol('label')) with labels left offset 1, -label_drops[i] / 100.0 textcolor rgb ink_of(i) noenhanced notitle, \
    for [i = 1:policy_count] data using (x(0)):(on_left(0) || is_grey(i) ? NaN : level('oom', i, 'reserved_bytes')):(strcol('label')) with labels right offset -1, -label_drops[i] / 100.0 textcolor rgb ink_of(i) noenhanced notitle
