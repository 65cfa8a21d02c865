# What reserved bytes are made of at their peak, one bar a policy.
load scripts.'/style.gp'

# Requested is what counts and dark; the rest, in Okabe and Ito's colours, is the price.
array fills[7] = ['#0072B2', '#56B4E9', '#009E73', '#E69F00', '#CC79A7', '#F0E442', '#D55E00']
array fields[7] = ['requested_bytes', 'rounding_bytes', 'unsplit_bytes', 'holes_bytes', 'cached_bytes', 'waiting_bytes', 'page_slack_bytes']
array marks[2] = ['peak_requested_bytes', 'packing_bytes']
below(k) = k < 1 ? 0 : below(k - 1) + column(fields[k]) / unit_bytes
row(_) = -lines[int(column(0)) + 1]

set xlabel sprintf('memory at the peak of reserved bytes (%s)', unit)
set xrange [0:max_bytes / unit_bytes * 1.16]
set yrange [-line_count - 0.7:-0.3]
unset ytics
set ytics scale 0 nomirror noenhanced
set ytics ('' 0)
do for [i = 1:bar_count] { set ytics add ((are_above ? '' : labels[i]) -lines[i]) }
do for [i = 1:bar_count] { if (are_above) { set label labels[i] at graph 0, first 0.75 - lines[i] left offset 0.5, 0 noenhanced textcolor '#444444' } }
if (exists("left_edge")) set lmargin at screen left_edge
do for [i = 1:bar_count] { if (strlen(heads[i]) > 0) { set label heads[i] at graph 0, first 1 + are_above - lines[i] left offset 0.5, 0 noenhanced textcolor '#222222' } }
set grid noytics xtics linetype 1 linewidth 0.5 linecolor '#DDDDDD'
set border 1
set key maxcols 4
set style textbox opaque margins 0.2, 0 fillcolor '#FFFFFF' noborder

ends(_) = sprintf('%.2f%s', column('reserved_bytes') / unit_bytes, column('is_oom') == 1 ? ' OOM' : '')
# A bound crosses all bars of its trace.
has_bound(j) = strlen(bounds[j]) > 0 && column(marks[j]) > 0
mark(j) = has_bound(j) ? column(marks[j]) / unit_bytes : NaN
plot \
    for [k = 1:7] data using (is_shown[k] ? (below(k - 1) + below(k)) / 2 : NaN):(row(0)):(below(k - 1)):(below(k)):(row(0) - 0.36):(row(0) + 0.36) with boxxyerror fillstyle solid border linecolor 'white' linewidth 0.4 fillcolor rgb fills[k] title (is_shown[k] ? parts[k] : ''), \
    for [j = 1:2] data using (mark(j)):(row(0) - 0.5):(0):(1) with vectors nohead linestyle 90 + j title bounds[j], \
    data using (below(7)):(row(0)):(ends(0)) with labels left offset 0.5, 0 textcolor '#222222' noenhanced boxed notitle
