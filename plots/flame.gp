# What is held at one moment by call stack: frames stand on the one that called them.
# By hand: gnuplot -e "data = 'flame.csv'; scripts = 'plots'" plots/flame.gp > flame.svg
load scripts.'/style.gp'
if (!exists("total_bytes")) stats data using 'bytes' nooutput; total_bytes = STATS_max
if (!exists("levels")) stats data using 'level' nooutput; levels = int(STATS_max) + 1

# Light, so that black names can be read on them.
array fills[9] = [0xDDDDDD, 0xF6D2A2, 0xF9E79F, 0xF5B7B1, 0xBFE3D0, 0xAED6F1, 0xD7BDE2, 0xE8DAB2, 0xC5CAE9]
low(_) = column('left_bytes') / unit_bytes
high(_) = (column('left_bytes') + column('bytes')) / unit_bytes
middle(_) = (low(0) + high(0)) / 2
height_of(_) = column('level')

unset key
unset grid
set border 1
unset ytics
set xlabel sprintf('requested memory (%s)', unit)
set xrange [0:total_bytes / unit_bytes]
set yrange [0:levels]
set lmargin at screen 0.02
set rmargin at screen 0.98
# A name needs a box that is as high as its letters.
text_size = levels > 44 ? 4 : levels > 32 ? 6 : levels > 22 ? 8 : levels > 16 ? 9 : 11
letters = sprintf(format eq 'svg' ? 'Helvetica&#44; Arial&#44; sans-serif,%.1f' : font_name.',%.1f', format eq 'svg' ? text_size : text_size * 0.66)
plot data using (middle(0)):(height_of(0) + 0.5):(low(0)):(high(0)):(height_of(0)):(height_of(0) + 1):(fills[int(column('colour')) + 1]) with boxxyerror fillstyle solid border linecolor 'white' linewidth 0.5 fillcolor rgb variable notitle, \
    data using (middle(0)):(column('has_label') == 1 ? height_of(0) + 0.5 : NaN):(stringcolumn('label')) with labels font letters noenhanced textcolor '#111111' notitle
