/* The table of a trace's figures in .fgt files. */
#include "traces/fgt/fgt.h"

#define HEAD_BYTES (4 * 4 + 8 * 8) /* four counts, then eight numbers */
#define SHARE_BYTES 16
#define MARK_BYTES 20

static void put_shares(frag_text *table, const frag_share *shares, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        frag_fgt_add(table, shares[i].count, 8);
        frag_fgt_add(table, shares[i].bytes, 8);
    }
}

void frag_fgt_figures_put(const frag_trace_figures *figures, frag_text *table)
{
    frag_fgt_add(table, FRAG_SIZE_CLASSES, 4);
    frag_fgt_add(table, figures->stream_count, 4);
    frag_fgt_add(table, figures->pool_count, 4);
    frag_fgt_add(table, figures->mark_count, 4);
    frag_fgt_add(table, figures->freed_count, 8);
    frag_fgt_add(table, figures->unfreed_count, 8);
    frag_fgt_add(table, figures->inferred_count, 8);
    frag_fgt_add(table, figures->guessed_count, 8);
    for (uint32_t i = 0; i < FRAG_LIFETIME_QUANTILES; i++)
        frag_fgt_add(table, figures->lifetimes[i], 8);
    put_shares(table, figures->sizes, FRAG_SIZE_CLASSES);
    put_shares(table, figures->streams, figures->stream_count);
    put_shares(table, figures->pools, figures->pool_count);
    for (uint32_t i = 0; i < figures->mark_count; i++) {
        frag_fgt_add(table, figures->marks[i].name, 4);
        frag_fgt_add(table, figures->marks[i].count, 8);
        frag_fgt_add(table, figures->marks[i].first_event, 8);
    }
}

static const unsigned char *get_shares(const unsigned char *in, frag_share *shares, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, in += SHARE_BYTES)
        shares[i] = (frag_share){frag_fgt_get(in, 8), frag_fgt_get(in + 8, 8)};
    return in;
}

frag_trace_figures *frag_fgt_figures_get(const unsigned char *in, size_t bytes)
{
    if (bytes < HEAD_BYTES || frag_fgt_get(in, 4) != FRAG_SIZE_CLASSES)
        return NULL;
    uint32_t streams = (uint32_t)frag_fgt_get(in + 4, 4);
    uint32_t pools = (uint32_t)frag_fgt_get(in + 8, 4);
    uint32_t marks = (uint32_t)frag_fgt_get(in + 12, 4);
    uint64_t shares = (uint64_t)FRAG_SIZE_CLASSES + streams + pools;
    if (bytes != HEAD_BYTES + shares * SHARE_BYTES + (uint64_t)marks * MARK_BYTES)
        return NULL;
    frag_trace_figures *figures = frag_trace_figures_create(streams, pools, marks);
    figures->freed_count = frag_fgt_get(in + 16, 8);
    figures->unfreed_count = frag_fgt_get(in + 24, 8);
    figures->inferred_count = frag_fgt_get(in + 32, 8);
    figures->guessed_count = frag_fgt_get(in + 40, 8);
    for (uint32_t i = 0; i < FRAG_LIFETIME_QUANTILES; i++)
        figures->lifetimes[i] = frag_fgt_get(in + 48 + 8 * i, 8);
    in = get_shares(in + HEAD_BYTES, figures->sizes, FRAG_SIZE_CLASSES);
    in = get_shares(in, figures->streams, streams);
    in = get_shares(in, figures->pools, pools);
    for (uint32_t i = 0; i < marks; i++, in += MARK_BYTES)
        figures->marks[i] = (frag_mark_share){(uint32_t)frag_fgt_get(in, 4),
                                              frag_fgt_get(in + 4, 8), frag_fgt_get(in + 12, 8)};
    return figures;
}
