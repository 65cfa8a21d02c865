# How far each policy is above the bound, over what it costs in device calls or in their time.
# By hand: gnuplot -e "data = 'front.csv'; scripts = 'plots'" plots/front.gp > front.svg
load scripts.'/style.gp'
if (!exists("is_by_time")) is_by_time = 0
if (!exists("over_least")) over_least = 0.1

x_unit = is_by_time ? 1e6 : 1.0
cost(_) = column(is_by_time ? 'time_ns' : 'calls') / x_unit
if (!exists("x_least")) x_least = 1; x_most = 100000; y_most = 1000

set logscale xy
set xlabel is_by_time ? 'modelled time of device calls (ms)' : 'device calls that move memory'
set ylabel 'peak reserved over bound (%)'
set xrange [x_least / x_unit:x_most / x_unit]
set yrange [over_least:y_most]
set ytics ('≤ 0.1' 0.1, '1' 1, '10' 10, '100' 100, '1000' 1000)
set format x '%g'
set mxtics 1
set mytics 1
unset key
set grid xtics ytics linetype 1 linewidth 0.5 linecolor '#DDDDDD'

is_drawn(front) = column('is_oom') == 0 && column('is_front') == front
x(front) = is_drawn(front) ? cost(0) : NaN
over(_) = column('over_bound_percent')
# Where a name stands beside its point: at its right (1), its left (-1) or in its middle, lines above.
named(front, side, lines) = is_drawn(front) && column('name_x') == side && column('name_y') == lines ? cost(0) : NaN
ink(front) = front ? '#000000' : '#777777'

# The line of the front goes on over the points between.
set datafile missing NaN
plot \
    data using (x(1)):(over(0)) smooth unique with steps linewidth 1.2 linecolor '#56B4E9' dashtype 2, \
    data using (column('is_planned') == 0 ? x(0) : NaN):(over(0)) with points pointtype 7 pointsize 0.7 linecolor '#999999', \
    data using (column('is_planned') == 1 ? x(0) : NaN):(over(0)) with points pointtype 6 pointsize 0.9 linecolor '#999999', \
    data using (x(1)):(over(0)) with points pointtype 7 pointsize 1.1 linecolor '#0072B2', \
    for [front = 0:1] for [up = -5:5] data using (named(front, 1, up)):(over(0)):(strcol('policy')) with labels left offset 0.9, 0.85 * up noenhanced textcolor rgb ink(front), \
    for [front = 0:1] for [up = -5:5] data using (named(front, -1, up)):(over(0)):(strcol('policy')) with labels right offset -0.9, 0.85 * up noenhanced textcolor rgb ink(front), \
    for [front = 0:1] for [up = -5:5] data using (named(front, 0, up)):(over(0)):(strcol('policy')) with labels center offset 0, 0.85 * up noenhanced textcolor rgb ink(front)
