# What is held at one moment by call stack: rectangles of frames hold those of the frames that they called.
# By hand: gnuplot -e "data = 'treemap.csv'; scripts = 'plots'" plots/treemap.gp > treemap.svg
load scripts.'/style.gp'
if (!exists("plane_width")) stats data using 'right' nooutput; plane_width = STATS_max
if (!exists("plane_height")) stats data using 'top' nooutput; plane_height = STATS_max

# Light, so that black names can be read on them; as in flame.gp.
array fills[9] = [0xDDDDDD, 0xF6D2A2, 0xF9E79F, 0xF5B7B1, 0xBFE3D0, 0xAED6F1, 0xD7BDE2, 0xE8DAB2, 0xC5CAE9]
x_of(_) = (column('left') + column('right')) / 2
y_of(_) = (column('bottom') + column('top')) / 2

unset key
unset grid
unset border
unset tics
set xrange [0:plane_width]
set yrange [0:plane_height]
set lmargin at screen 0.01
set rmargin at screen 0.99
set bmargin at screen 0.01
letters = format eq 'svg' ? 'Helvetica&#44; Arial&#44; sans-serif,11' : font_name.',7.3'
plot data using (x_of(0)):(y_of(0)):'left':'right':'bottom':'top':(fills[int(column('colour')) + 1]) with boxxyerror fillstyle solid border linecolor 'white' linewidth 0.8 fillcolor rgb variable notitle, \
    data using (x_of(0)):(column('has_label') == 1 ? column('label_y') : NaN):(stringcolumn('label')) with labels font letters noenhanced textcolor '#111111' notitle
