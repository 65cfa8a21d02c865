# How far each policy is above the bound, over what it costs in device calls or in their time.
# By hand: gnuplot -e "data = 'front.csv'; scripts = 'plots'" plots/front.gp > front.svg
load scripts.'/style.gp'
if (!exists("is_by_time")) stats data using (strlen(strcol('time_ns')) > 0) nooutput; is_by_time = STATS_min > 0
if (!exists("over_least")) over_least = 0.1
if (!exists("packing_bytes")) stats data using (strlen(strcol('packing_bytes')) > 0 ? column('packing_bytes') : 0) nooutput; packing_bytes = STATS_max; packing_text = sprintf('%.2f %s', packing_bytes / unit_bytes, unit)
if (!exists("packing_over")) stats data using 'peak_requested_bytes' nooutput; packing_over = 100 * (packing_bytes / STATS_max - 1); packing_over = packing_over > over_least ? packing_over : over_least
if (!exists("has_names")) has_apart = 1; has_others = 1; has_planned = 1; array has_names[6] = [1, 1, 1, 1, 1, 1]

x_unit = is_by_time ? 1e6 : 1.0
cost(_) = column(is_by_time ? 'time_ns' : 'calls') / x_unit
if (!exists("x_least")) stats data using (cost(0)) nooutput; x_least = STATS_min * x_unit / 1.5; x_most = STATS_max * x_unit * 3; stats data using 'over_bound_percent' nooutput; y_most = STATS_max * 1.5
if (!exists("y_least")) y_least = over_least * (packing_bytes > 0 ? 0.75 : 1)
if (!exists("name_gap")) name_gap = 1.0

set logscale xy
set xlabel is_by_time ? 'modelled time of device calls (ms)' : 'device calls that move memory'
set ylabel 'peak reserved over bound (%)'
set xrange [x_least / x_unit:x_most / x_unit]
set yrange [y_least:y_most]
if (exists("left_edge")) set lmargin at screen left_edge; set rmargin at screen right_edge; set bmargin at screen low_edge; set tmargin at screen high_edge
set ytics ('≤ 0.1' 0.1, '1' 1, '10' 10, '100' 100, '1000' 1000)
set format x '%g'
# A range of less than two decades has too few powers of ten to read it by.
if (x_most < 100 * x_least) set xtics (1); do for [power = -6:15] { do for [step in '1 2 5'] { tic = step * 10.0 ** power; set xtics add (sprintf('%g', tic) tic) } }
set mxtics 1
set mytics 1
if (packing_bytes == 0) unset key
set grid xtics ytics linetype 1 linewidth 0.5 linecolor '#DDDDDD'

is_drawn(front) = column('is_oom') == 0 && column('is_front') == front
x(front) = is_drawn(front) ? cost(0) : NaN
over(_) = column('over_bound_percent')
# Where names begin (1), end (-1) or have their middle.
name_x(front, side) = is_drawn(front) && column('name_side') == side ? column('name_cost') / x_unit : NaN
name_y(_) = column('name_over_percent')
apart(_) = column('is_oom') == 0 && column('is_name_apart') == 1 ? cost(0) : NaN
# The line to a name ends a little before it.
leader_x(_) = column('name_cost') / x_unit / name_gap ** column('name_side')
# Long names are shortened.
name(_) = exists('names') ? names[int(column('series'))] : strcol('policy')
ink(front) = front ? '#000000' : '#777777'

# A curve that is not drawn leaves its title in an svg all the same.
packing_title = packing_bytes > 0 ? 'offline packing, '.packing_text : ''
# The line of the front goes on over the points between.
set datafile missing NaN
plot \
    data using (x(1)):(over(0)) smooth unique with steps linewidth 1.2 linecolor '#56B4E9' dashtype 2 notitle, \
    for [i = 1:packing_bytes > 0] packing_over with lines linestyle 92 title packing_title, \
    for [i = 1:has_apart] data using (apart(0)):(over(0)):(leader_x(0) - cost(0)):(name_y(0) - over(0)) with vectors nohead linewidth 0.5 linecolor '#BBBBBB' notitle, \
    for [i = 1:has_others] data using (column('is_planned') == 0 ? x(0) : NaN):(over(0)) with points pointtype 7 pointsize 0.7 linecolor '#888888' notitle, \
    for [i = 1:has_planned] data using (column('is_planned') == 1 ? x(0) : NaN):(over(0)) with points pointtype 6 pointsize 0.9 linecolor '#888888' notitle, \
    data using (x(1)):(over(0)) with points pointtype 7 pointsize 1.1 linecolor '#0072B2' notitle, \
    for [front = 0:1] for [i = 1:has_names[3 * front + 1]] data using (name_x(front, -1)):(name_y(0)):(name(0)) with labels right noenhanced textcolor rgb ink(front) notitle, \
    for [front = 0:1] for [i = 1:has_names[3 * front + 2]] data using (name_x(front, 0)):(name_y(0)):(name(0)) with labels center noenhanced textcolor rgb ink(front) notitle, \
    for [front = 0:1] for [i = 1:has_names[3 * front + 3]] data using (name_x(front, 1)):(name_y(0)):(name(0)) with labels left noenhanced textcolor rgb ink(front) notitle
