#include "plots/parts/plot_raster.h"

#include "base/memory.h"

typedef struct pixel {
    float ground;
    float paint;
    float red;
    float green;
    float blue;
    float line;
} pixel;

struct frag_raster {
    size_t width;
    size_t height;
    pixel *pixels;
};

#define LINE_WEIGHT 0.55f
#define LINE_COLOUR 0.25f

frag_raster *frag_raster_create(size_t width, size_t height)
{
    frag_raster *raster = frag_alloc(1, sizeof *raster);
    raster->width = width;
    raster->height = height;
    raster->pixels = frag_alloc(width * height, sizeof *raster->pixels);
    return raster;
}

static double clamp(double value, double max)
{
    return value < 0 ? 0 : value > max ? max : value;
}

static double overlap(double low, double high, size_t cell)
{
    double from = low > (double)cell ? low : (double)cell;
    double to = high < (double)cell + 1 ? high : (double)cell + 1;
    return to > from ? to - from : 0;
}

/* colour NULL: ground. */
static void add(frag_raster *raster, const frag_box *box, const frag_colour *colour)
{
    double left = clamp(box->left, (double)raster->width);
    double right = clamp(box->right, (double)raster->width);
    double bottom = clamp(box->bottom, (double)raster->height);
    double top = clamp(box->top, (double)raster->height);
    for (size_t y = (size_t)bottom; y < raster->height && (double)y < top; y++) {
        double high = overlap(bottom, top, y);
        pixel *row = raster->pixels + y * raster->width;
        for (size_t x = (size_t)left; x < raster->width && (double)x < right; x++) {
            float share = (float)(high * overlap(left, right, x));
            if (colour == NULL) {
                row[x].ground += share;
                continue;
            }
            row[x].paint += share;
            row[x].red += share * colour->red;
            row[x].green += share * colour->green;
            row[x].blue += share * colour->blue;
        }
    }
}

void frag_raster_ground(frag_raster *raster, const frag_box *box)
{
    add(raster, box, NULL);
}

void frag_raster_paint(frag_raster *raster, const frag_box *box, frag_colour colour)
{
    add(raster, box, &colour);
}

void frag_raster_line(frag_raster *raster, const frag_box *box)
{
    size_t y = (size_t)clamp(box->bottom, (double)raster->height - 1);
    double right = clamp(box->right, (double)raster->width);
    for (size_t x = (size_t)clamp(box->left, (double)raster->width); (double)x < right; x++)
        raster->pixels[y * raster->width + x].line = LINE_WEIGHT;
}

static unsigned char byte_of(float sum, float over, float ground, float background, const pixel *at)
{
    float value = sum + over * ground + (1 - at->paint - over) * background;
    value = value * (1 - at->line) + LINE_COLOUR * at->line;
    return (unsigned char)(clamp((double)value, 1) * 255 + 0.5);
}

void frag_raster_write(const frag_raster *raster, frag_colour background, frag_colour ground,
                       FILE *stream)
{
    for (size_t i = 0; i < raster->width * raster->height; i++) {
        const pixel *at = &raster->pixels[i];
        float over = at->ground > at->paint ? at->ground - at->paint : 0;
        fputc(byte_of(at->red, over, ground.red, background.red, at), stream);
        fputc(byte_of(at->green, over, ground.green, background.green, at), stream);
        fputc(byte_of(at->blue, over, ground.blue, background.blue, at), stream);
    }
}

frag_shares frag_raster_at(const frag_raster *raster, size_t x, size_t y)
{
    const pixel *at = &raster->pixels[y * raster->width + x];
    return (frag_shares){at->ground, at->paint};
}

void frag_raster_destroy(frag_raster *raster)
{
    frag_free(raster->pixels);
    frag_free(raster);
}
