# A figure of rows over two of their fields, a cell for each combination.
# By hand: gnuplot -e "data = 'heat.csv'; scripts = 'plots'" plots/heat.gp > heat.svg
load scripts.'/style.gp'
if (!exists("x_count")) stats data using 'x_index' nooutput; x_count = int(STATS_max) + 1; x_title = 'x'; array x_values[x_count]; do for [i = 1:x_count] { x_values[i] = sprintf('%d', i) }
if (!exists("y_count")) stats data using 'y_index' nooutput; y_count = int(STATS_max) + 1; y_title = 'y'; array y_values[y_count]; do for [i = 1:y_count] { y_values[i] = sprintf('%d', i) }
if (!exists("z_unit")) z_unit = 1.0; z_title = 'z'; stats data using 'z' nooutput; z_min = STATS_min; z_max = STATS_max
if (!exists("has_values")) has_values = x_count * y_count <= 400; has_oom = 1; has_refused = 1; has_missing = 1

is(kind) = strcol('kind') eq kind
z(_) = column('z') / z_unit
left(_) = column('x_index') - 0.5
low(_) = column('y_index') - 0.5
span = z_max > z_min ? z_max - z_min : abs(z_max) > 0 ? abs(z_max) * 0.1 : 1.0
is_dark(_) = (z(0) - z_min) / span > 0.55

set xrange [-0.5:x_count - 0.5]
set yrange [-0.5:y_count - 0.5]
set xlabel x_title noenhanced
set ylabel y_title noenhanced
unset grid
set border 15
set tics scale 0
# So many names as there is room for.
x_every = int(ceil(x_count / 12.0))
y_every = int(ceil(y_count / 20.0))
set xtics noenhanced ('' 0)
set ytics noenhanced ('' 0)
do for [i = 1:x_count:x_every] { set xtics add (x_values[i] i - 1) }
do for [i = 1:y_count:y_every] { set ytics add (y_values[i] i - 1) }
longest = 0
do for [i = 1:x_count:x_every] { longest = strlen(x_values[i]) > longest ? strlen(x_values[i]) : longest }
if (longest * 7.5 > 560.0 / x_count * x_every) { set xtics rotate by 30 right }

set palette defined (0 '#FCFDBF', 1 '#FEC287', 2 '#FB8861', 3 '#E65164', 4 '#B5367A', 5 '#822681', 6 '#51127C', 7 '#1D1147')
set cbrange [z_min:z_min + span]
set cblabel z_title noenhanced offset 1, 0
set cbtics nomirror scale 0.4
set key outside above right horizontal Left reverse noenhanced samplen 2
if (!has_oom && !has_refused && !has_missing) unset key
text_size = x_count > 12 || y_count > 20 ? ',8' : ',11'
if (format ne 'svg') text_size = x_count > 12 || y_count > 20 ? ',5.5' : ',7.5'

plot \
    data using (is('value') ? column('x_index') : NaN):(column('y_index')):(left(0)):(left(0) + 1):(low(0)):(low(0) + 1):(z(0)) with boxxyerror fillstyle solid border linecolor '#FFFFFF' linewidth 0.4 fillcolor palette notitle, \
    for [i = 1:has_missing] data using (is('missing') ? column('x_index') : NaN):(column('y_index')):(left(0)):(left(0) + 1):(low(0)):(low(0) + 1) with boxxyerror fillstyle solid border linecolor '#FFFFFF' linewidth 0.4 fillcolor '#D4D4D4' title 'no row', \
    for [i = 1:has_refused] data using (is('refused') ? column('x_index') : NaN):(column('y_index')):(left(0)):(left(0) + 1):(low(0)):(low(0) + 1) with boxxyerror fillstyle pattern 1 border linecolor '#888888' linewidth 0.4 fillcolor '#888888' title 'refused by the policy', \
    for [i = 1:has_oom] data using (is('oom') ? column('x_index') : NaN):(column('y_index')):(left(0)):(left(0) + 1):(low(0)):(low(0) + 1) with boxxyerror fillstyle pattern 4 border linecolor '#0072B2' linewidth 0.4 fillcolor '#0072B2' title 'OOM', \
    for [i = 1:has_values] data using (is('value') && is_dark(0) ? column('x_index') : NaN):(column('y_index')):(strcol('shown')) with labels noenhanced font text_size textcolor '#FFFFFF' notitle, \
    for [i = 1:has_values] data using (is('value') && !is_dark(0) ? column('x_index') : NaN):(column('y_index')):(strcol('shown')) with labels noenhanced font text_size textcolor '#000000' notitle
