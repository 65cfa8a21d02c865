/* A picture of rectangles that shows each pixel's exact mixture: what is smaller than a pixel tints
 * it. */
#ifndef FRAG_PARTS_PLOT_RASTER_H
#define FRAG_PARTS_PLOT_RASTER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct frag_colour {
    float red; /* 0 to 1 */
    float green;
    float blue;
} frag_colour;

/* In pixels; y runs up. */
typedef struct frag_box {
    double left;
    double right;
    double bottom;
    double top;
} frag_box;

typedef struct frag_raster frag_raster;

frag_raster *frag_raster_create(size_t width, size_t height);

/* Ground: covers the background; boxes of ground do not overlap each other. */
void frag_raster_ground(frag_raster *raster, const frag_box *box);
/* Paint: covers the ground; boxes of paint do not overlap each other. */
void frag_raster_paint(frag_raster *raster, const frag_box *box, frag_colour colour);
/* A thin line over everything, from left to right at bottom. */
void frag_raster_line(frag_raster *raster, const frag_box *box);

/* Red, green and blue bytes of each pixel, the lowest row first. */
void frag_raster_write(const frag_raster *raster, frag_colour background, frag_colour ground,
                       FILE *stream);

/* Shares of a pixel, for those who draw with characters. */
typedef struct frag_shares {
    float ground;
    float paint;
} frag_shares;
frag_shares frag_raster_at(const frag_raster *raster, size_t x, size_t y);

void frag_raster_destroy(frag_raster *raster);

#endif
