# Where blocks lay: address over events or time. The picture comes with the data, drawn by fraglab.
load scripts.'/style.gp'
x_unit = x_scale(is_by_time, x_max)
x_step = (x_max - x_min) / x_unit / columns
y_step = y_max_bytes / unit_bytes / rows

set xlabel x_label(is_by_time, x_max)
set ylabel sprintf('address, without gaps (%s)', unit)
set xrange [x_min / x_unit:x_max / x_unit]
set yrange [0:y_max_bytes / unit_bytes]
unset grid
set border 15

size_name(k) = k >= 30 ? sprintf('%d GiB', 2 ** (k - 30)) : k >= 20 ? sprintf('%d MiB', 2 ** (k - 20)) : k >= 10 ? sprintf('%d KiB', 2 ** (k - 10)) : sprintf('%d B', 2 ** k)
if (group_count == 0) {
    eval('set palette defined ('.size_colours.')')
    set cbrange [log_min:log_max]
    set label 1 'block size' at graph 1.02, graph 1.06 left
    unset cbtics
    step = log_max - log_min > 12 ? 3 : log_max - log_min > 6 ? 2 : 1
    set cbtics nomirror scale 0.4
    set cbtics ('≤ '.size_name(log_min) log_min)
    do for [k = log_min + step : log_max : step] { set cbtics add (size_name(k) k) }
    set colorbox user origin screen 0.875, graph 0 size screen 0.018, graph 1
    set rmargin at screen 0.855
} else {
    unset colorbox
}
plot \
    picture binary array = (columns, rows) format = '%uchar%uchar%uchar' origin = (x_min / x_unit + x_step / 2, y_step / 2) dx = x_step dy = y_step using 1:2:3 with rgbimage notitle, \
    for [i = 1:group_count] NaN with boxes fillstyle solid border linecolor '#444444' fillcolor rgb group_colours[i] title groups[i], \
    for [i = 1:has_others] NaN with boxes fillstyle solid border linecolor '#444444' fillcolor '#777777' title 'other', \
    NaN with boxes fillstyle solid border linecolor '#444444' fillcolor '#FFFFFF' title 'hole in a segment', \
    NaN with boxes fillstyle solid border linecolor '#444444' fillcolor '#D4D4D4' title 'no segment', \
    for [i = 1:group_count == 0] '+' using (NaN):(NaN):(log_min) with points palette notitle
