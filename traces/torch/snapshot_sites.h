/* Strings and call stacks of a snapshot, moved into a recording; each only once. */
#ifndef FRAG_TORCH_SNAPSHOT_SITES_H
#define FRAG_TORCH_SNAPSHOT_SITES_H

#include "traces/builder.h"
#include "traces/pickle/pickle_tree.h"

typedef struct frag_snapshot_sites {
    const frag_pickle *pickle;
    frag_builder *builder;
    bool is_on;
    bool has_stacks;   /* one with frames was found */
    uint32_t *strings; /* by string of the pickle: the recording's + 1 */
    uint32_t *objects; /* by object: a frame's or call site's id + 1 */
    uint32_t *lines;   /* by string: the frame's id + 1 of a line of the forward pass; NULL: none */
    uint32_t *frames;  /* of the stack being built */
    uint32_t frame_count;
    size_t frame_capacity;
} frag_snapshot_sites;

/* Stacks are left out unless is_on. */
void frag_snapshot_sites_create(frag_snapshot_sites *sites, const frag_pickle *pickle,
                                frag_builder *builder, bool is_on);
void frag_snapshot_sites_destroy(frag_snapshot_sites *sites);

/* A string of the pickle; bytes that are not UTF-8 become '?'. */
uint32_t frag_snapshot_sites_string(frag_snapshot_sites *sites, uint32_t text);
/* The call site of a list of frames, given as its object number + 1; 0 is none. */
uint32_t frag_snapshot_sites_site(frag_snapshot_sites *sites, uint32_t frames);
/* That of a request whose stack was taken and is empty, or of wrappers alone (frame_owner.h), once
 * other stacks had frames: it came from a thread without Python, where only Python's frames were
 * kept. */
uint32_t frag_snapshot_sites_empty(frag_snapshot_sites *sites);
/* That of a request in the backward pass whose forward pass is recorded: the frames, then those of
 * the forward pass, lines of text, whose functions are called "backward of NAME". */
uint32_t frag_snapshot_sites_backward(frag_snapshot_sites *sites, uint32_t frames,
                                      uint32_t forward);

#endif
