# Who holds the requested memory: layers that add up to it, over events or time.
# By hand: gnuplot -e "data = 'sites.csv'; scripts = 'plots'" plots/sites.gp > sites.svg
load scripts.'/style.gp'
if (!exists("is_by_time")) is_by_time = 0
if (!exists("layer_count")) stats data using 'layer' nooutput; layer_count = int(STATS_max) - 1; has_rest = 1; array layers[layer_count + 1]; do for [i = 1:layer_count] { layers[i] = sprintf('layer %d', i) }; layers[layer_count + 1] = 'other'
if (!exists("x_max")) stats data using (strcol('kind') eq 'sample' ? (is_by_time ? column('time_ns') / 1e9 : column('event')) : NaN) nooutput; x_max = STATS_max; x_min = STATS_min; x_peak = NaN; peak_text = ''
if (!exists("packing_bytes")) stats data using (strcol('kind') eq 'bound' ? column('requested_bytes') : 0) nooutput; packing_bytes = STATS_max; packing_text = sprintf('%.2f %s', packing_bytes / unit_bytes, unit)

# Light and dark take turns, so that neighbours differ without colours too.
array fills[8] = ['#0072B2', '#E69F00', '#009E73', '#F0E442', '#D55E00', '#56B4E9', '#7A5C00', '#CC79A7']
fill(i) = i > layer_count ? '#B8B8B8' : fills[(i - 1) % 8 + 1]

x_unit = x_scale(is_by_time, x_max)
x(_) = (is_by_time ? column('time_ns') / 1e9 : column('event')) / x_unit
held(i) = column(i > layer_count ? 'other_bytes' : sprintf('layer_%d_bytes', i))
edge(i) = strcol('kind') eq 'sample' ? (sum [k = 1:i] held(k)) / unit_bytes : NaN

set xlabel x_label(is_by_time, x_max)
set ylabel sprintf('requested memory (%s)', unit)
set xrange [x_min / x_unit:x_max / x_unit]
set yrange [0:*]
set offsets 0, 0, graph 0.06, 0
set rmargin at screen 0.66
set key at screen 0.67, graph 0.98 left top vertical Left reverse noenhanced samplen 1.2 spacing 1.3 title 'share of the peak' left
if (x_peak == x_peak) { set arrow 1 from first x_peak / x_unit, graph 0 to first x_peak / x_unit, graph 1 nohead linewidth 1 linecolor '#222222' dashtype 2 front; on_left = x_peak - x_min < (x_max - x_min) / 2; if (on_left) { set label 1 'peak '.peak_text at first x_peak / x_unit, graph 0.98 left offset 0.6, 0 textcolor '#222222' front } else { set label 1 'peak '.peak_text at first x_peak / x_unit, graph 0.98 right offset -0.6, 0 textcolor '#222222' front } }

# A curve that is not drawn leaves its title in an svg all the same.
packing_title = packing_bytes > 0 ? 'offline packing, '.packing_text : ''
# From the top down: each covers what is below its edge.
plot for [i = layer_count + has_rest:1:-1] data using (x(0)):(edge(i)) with fillsteps fillstyle solid fillcolor rgb fill(i) title layers[i], \
    for [i = 1:packing_bytes > 0] packing_bytes / unit_bytes with lines linestyle 92 title packing_title
