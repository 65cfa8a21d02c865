# The share of requests served before the first OOM, over the capacity of the device.
# By hand: gnuplot -e "data = 'survival.csv'; scripts = 'plots'" plots/survival.gp > survival.svg
load scripts.'/style.gp'
if (!exists("policies")) stats data using 'series' nooutput; policy_count = int(STATS_max); array policies[policy_count]; do for [i = 1:policy_count] { policies[i] = sprintf('policy %d', i) }
if (!exists("named_count")) named_count = policy_count < 8 ? policy_count : 8; array places[policy_count]; do for [i = 1:policy_count] { places[i] = i <= 8 ? i : 0 }
if (!exists("max_bytes")) stats data using 'capacity_bytes' nooutput; max_bytes = STATS_max; first_bytes = STATS_min; bound_text = ''
if (!exists("packing_bytes")) stats data using (strcol('kind') eq 'bound' ? column('capacity_bytes') : 0) nooutput; packing_bytes = STATS_max; packing_text = sprintf('%.2f %s', packing_bytes / unit_bytes, unit)
if (!exists("packing_capacity_bytes")) packing_capacity_bytes = packing_bytes

is(kind, i) = strcol('kind') eq kind && column('series') == i
capacity(_) = column('capacity_bytes') / unit_bytes
served(kind, i) = is(kind, i) ? 100 * column('served_ratio') : NaN
room = (max_bytes - first_bytes) * 0.04

set xlabel sprintf('capacity of the device (%s)', unit)
set ylabel 'requests served before OOM (%)'
set xrange [(first_bytes - room) / unit_bytes:max_bytes / unit_bytes]
set yrange [0:105]
set ytics 0, 20, 100
set key title 'policy: least capacity that survives' noenhanced
set arrow 1 from first_bytes / unit_bytes, graph 0 to first_bytes / unit_bytes, graph 1 nohead linestyle 91 back
if (packing_bytes > 0) { set arrow 2 from packing_capacity_bytes / unit_bytes, graph 0 to packing_capacity_bytes / unit_bytes, graph 1 nohead linestyle 92 }
if (is_terminal) unset arrow 1; unset arrow 2
# A key that is not drawn leaves its title in an svg all the same.
others_title = policy_count > named_count ? sprintf('%d others', policy_count - named_count) : ''
packing_title = packing_bytes > 0 ? 'offline packing: '.packing_text : ''
plot \
    for [i = 1:policy_count] data using (is('curve', i) && is_grey(i) ? capacity(0) : NaN):(served('curve', i)) with steps linewidth width_of(i, 8) linecolor rgb ink_of(i) notitle, \
    for [i = 1:policy_count] data using (is('curve', i) && !is_grey(i) ? capacity(0) : NaN):(served('curve', i)) with steps linewidth width_of(i, named_count) linecolor rgb ink_of(i) title (is_grey(i) ? '' : policies[i]), \
    for [i = 1:policy_count > named_count] keyentry with lines linewidth 0.8 linecolor rgb '#C4C4C4' title others_title, \
    for [i = 1:policy_count] data using (is('least', i) ? capacity(0) : NaN):(served('least', i)) with points pointtype 7 pointsize (is_grey(i) ? 0.5 : 1.1) linecolor rgb ink_of(i) notitle, \
    for [i = 1:!is_terminal] keyentry with lines linestyle 91 title 'requested at the peak'.bound_text, \
    for [i = 1:packing_bytes > 0 && !is_terminal] keyentry with lines linestyle 92 title packing_title
