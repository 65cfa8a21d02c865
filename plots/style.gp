# What all figures share: terminal, fonts, colours, units. Each script loads it first.
#
# Variables that fraglab defines, with what they are when a script is run by hand:
if (!exists("format")) format = 'svg'
if (!exists("width")) width = format eq 'png' ? 1600 : 800
if (!exists("height")) height = format eq 'png' ? 1000 : 500
if (!exists("title_text")) title_text = ''
if (!exists("unit")) unit = 'GiB'; unit_bytes = 1073741824.0
if (!exists("has_colour")) has_colour = 0

# A single event has no width.
if (exists("x_max") && x_max <= x_min) x_max = x_min + 1

is_terminal = format eq 'terminal'
# A comma ends the name of a font; as an entity it comes through to the reader of the svg.
if (format eq 'svg') set terminal svg size width, height font 'Helvetica&#44; Arial&#44; sans-serif,12' linewidth 1 rounded background 'white'
# The widest of the fonts that a bare system has, at a size at which its letters are as wide as those of
# Helvetica at 12 pixels: figures look the same everywhere, and any other font takes less room.
if (!exists("font_name")) font_name = 'DejaVu Sans'
if (format eq 'png') set terminal pngcairo size width, height font font_name.',7.9' rounded fontscale width / 800.0 linewidth width / 800.0 pointscale width / 800.0 background 'white'
if (format eq 'pdf') set terminal pdfcairo size width / 96.0, height / 96.0 font font_name.',7.9' linewidth 1 rounded background 'white'
if (is_terminal && has_colour) set terminal dumb size width, height ansi256
if (is_terminal && !has_colour) set terminal dumb size width, height mono

set encoding utf8
set datafile separator comma
set datafile columnheaders

# Okabe and Ito's palette, which people with any colour vision tell apart.
array colours[8] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000', '#8A6D00']
# Of n lines the first are broader: they show at both sides of a later one that lies on them, and
# can be told apart in print without colours.
thick(i, n) = n > 1 ? 1.5 + 1.4 * (n - i) / (n - 1.0) : 1.8

# With more lines than colours, those that matter most are drawn in colour and named; the others are
# thin and grey, below them, with one entry of the key for all. places[i]: among the named, or 0.
is_grey(i) = places[i] == 0
ink_of(i) = is_grey(i) ? '#C4C4C4' : colours[places[i]]
width_of(i, n) = is_grey(i) ? 0.8 : thick(places[i], n)

# Bounds: what is requested at the peak is broad and grey, the packing dark dashes that show on it.
set style line 91 linewidth 3 linecolor '#A0A0A0'
set style line 92 linewidth 1.2 linecolor '#222222' dashtype 4

set title title_text noenhanced offset 0, 0
set border 3 linewidth 0.8 linecolor '#444444'
set tics nomirror out scale 0.6 textcolor '#222222'
set grid ytics linetype 1 linewidth 0.5 linecolor '#DDDDDD'
set key outside above center horizontal Left reverse noenhanced samplen 2 spacing 1.1
if (is_terminal) unset grid
if (is_terminal) set border 3

# Events are counted in thousands or millions when there are many; time is in seconds.
x_scale(is_by_time, x_end) = is_by_time ? 1.0 : x_end >= 5e6 ? 1e6 : x_end >= 5e3 ? 1e3 : 1.0
x_label(is_by_time, x_end) = is_by_time ? 'time (s)' : x_end >= 5e6 ? 'event (millions)' : x_end >= 5e3 ? 'event (thousands)' : 'event'
