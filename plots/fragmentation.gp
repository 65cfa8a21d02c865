# What reserved memory is made of, how well it is used, and what its holes are too small for.
# By hand: gnuplot -e "data = 'fragmentation.csv'; scripts = 'plots'" plots/fragmentation.gp > fragmentation.svg
load scripts.'/style.gp'
if (!exists("is_by_time")) is_by_time = 0
if (!exists("x_max")) stats data using (strcol('kind') eq 'sample' ? (is_by_time ? column('time_ns') / 1e9 : column('event')) : NaN) nooutput; x_max = STATS_max; x_min = STATS_min
if (!exists("log_max")) stats data using (log(column('size_bytes')) / log(2)) nooutput; log_min = STATS_min; log_max = STATS_max; columns = STATS_records / (log_max - log_min + 1)
if (!exists("size_count")) size_count = 0; array sizes[1]; array size_names[1]
if (!exists("has_oom")) has_oom = 0; oom_x = 0; oom_text = ''
if (!exists("packing_bytes")) stats data using (strcol('kind') eq 'bound' ? column('reserved_bytes') : 0) nooutput; packing_bytes = STATS_max; packing_text = sprintf('%.2f %s', packing_bytes / unit_bytes, unit)

x_unit = x_scale(is_by_time, x_max)
x(_) = (is_by_time ? column('time_ns') / 1e9 : column('event')) / x_unit
is(kind) = strcol('kind') eq kind
level(bytes) = is('sample') ? bytes / unit_bytes : NaN
reserved(_) = column('reserved_bytes')
free_bytes(_) = column('free_bytes')
largest(_) = column('largest_hole_bytes')
percent(part, whole) = is('sample') && whole > 0 ? 100 * part / whole : NaN
size_name(k) = k >= 30 ? sprintf('%d GiB', 2 ** (k - 30)) : k >= 20 ? sprintf('%d MiB', 2 ** (k - 20)) : k >= 10 ? sprintf('%d KiB', 2 ** (k - 10)) : sprintf('%d B', 2 ** k)
cells = columns * (log_max - log_min + 1)
step = (x_max - x_min) / columns

set xrange [x_min / x_unit:x_max / x_unit]
if (is_terminal) {
    set xlabel x_label(is_by_time, x_max)
    set ylabel '%'
    set yrange [0:105]
    plot data using (x(0)):(percent(column('allocated_bytes'), reserved(0))) with steps title 'utilisation (%)', \
        data using (x(0)):(percent(largest(0), free_bytes(0))) with steps title 'largest hole of what is free (%)'
} else {
    set multiplot
    set lmargin at screen 0.105
    set rmargin at screen 0.825
    set key at screen 0.838, 0.945 left top vertical Left reverse noenhanced samplen 1.2 spacing 1.15
    set format x ''

    # Reserved bytes, from the floor: what blocks take, the largest hole, the other holes.
    set tmargin at screen 0.935
    set bmargin at screen 0.66
    set ylabel sprintf('memory (%s)', unit) offset 0.5, 0
    set yrange [0:*]
    set offsets 0, 0, graph 0.04, 0
    if (has_oom) { set label 1 "OOM:\n".oom_text at screen 0.845, 0.78 left textcolor '#D55E00' noenhanced; set arrow 1 from first oom_x / x_unit, graph 0 to first oom_x / x_unit, graph 1 nohead linewidth 1.2 linecolor '#D55E00' front }
    # A curve that is not drawn leaves its title in an svg all the same.
    packing_title = packing_bytes > 0 ? 'offline packing' : ''
    plot \
        data using (x(0)):(level(reserved(0))) with fillsteps fillstyle solid fillcolor '#F0A35C' title 'other holes', \
        data using (x(0)):(level(reserved(0) - free_bytes(0) + largest(0))) with fillsteps fillstyle solid fillcolor '#FBE3B5' title 'largest hole', \
        data using (x(0)):(level(reserved(0) - free_bytes(0))) with fillsteps fillstyle solid fillcolor '#0072B2' title 'blocks', \
        for [i = 1:packing_bytes > 0] packing_bytes / unit_bytes with lines linestyle 92 title packing_title, \
        for [i = 1:packing_bytes > 0] keyentry with dots linecolor '#FFFFFF' title packing_text
    unset label 1
    set title ''

    set key at screen 0.838, 0.635
    set tmargin at screen 0.625
    set bmargin at screen 0.425
    set ylabel 'share (%)' offset 0.5, 0
    set yrange [0:105]
    set ytics 0, 25, 100
    set offsets 0, 0, 0, 0
    plot \
        data using (x(0)):(percent(largest(0), free_bytes(0))) with steps linewidth 1 linecolor '#D55E00' title 'largest / free', \
        data using (x(0)):(percent(column('allocated_bytes'), reserved(0))) with steps linewidth 1.8 linecolor '#0072B2' title 'utilisation'

    # The strip: a column's mean of the share of free memory in holes smaller than each size.
    set tmargin at screen 0.345
    set bmargin at screen 0.09
    set format x '%g'
    set xlabel x_label(is_by_time, x_max)
    unset ylabel
    set yrange [log_min - 0.5:log_max + 0.5]
    unset grid
    unset key
    unset ytics
    set ytics nomirror out scale 0.4 noenhanced
    set ytics ('' log_min)
    rows = log_max - log_min > 12 ? 3 : log_max - log_min > 6 ? 2 : 1
    do for [k = log_min : log_max : rows] { set ytics add (size_name(k) k) }
    # Names of sizes close to each other give way to the larger one.
    above = log_max + 99.0
    do for [i = size_count:1:-1] { at = log(sizes[i]) / log(2); if (at >= log_min - 0.5 && above - at >= (log_max - log_min + 1) * 0.09) { above = at; set arrow 10 + i from graph 0, first at to graph 1.012, first at nohead linewidth 0.8 linecolor '#444444' dashtype 3 front; set label 10 + i size_names[i] at graph 1.02, first at left noenhanced textcolor '#222222' } }
    set object 1 rectangle from graph 0, graph 0 to graph 1, graph 1 behind fillstyle solid noborder fillcolor '#D4D4D4'
    set palette defined (0 '#FCFDBF', 1 '#FEC287', 2 '#FB8861', 3 '#E65164', 4 '#B5367A', 5 '#822681', 6 '#51127C', 7 '#1D1147')
    set cbrange [0:100]
    set cbtics ('0' 0, '50' 50, '100 %%' 100) nomirror scale 0.3 offset 0, 0.4
    set colorbox horizontal user origin screen 0.645, 0.381 size screen 0.18, 0.014
    set label 30 'free memory in holes too small for a request of the size at the left' at screen 0.105, 0.372 left
    plot data every ::0::(cells - 1) using ((is_by_time ? column('time_ns') / 1e9 : column('event')) / x_unit + step / x_unit / 2):(log(column('size_bytes')) / log(2)):(column('unusable_ratio') * 100) with image
    unset multiplot
}
