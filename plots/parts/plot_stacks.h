/* What is held at one moment as a tree of call stacks, for the kinds of figures that draw it. */
#ifndef FRAG_PARTS_PLOT_STACKS_H
#define FRAG_PARTS_PLOT_STACKS_H

#include "plots/plot.h"
#include "traces/number_map.h"

#define FRAG_NODE_NONE UINT32_MAX
#define FRAG_STACK_NAME_CHARACTERS 80u

enum { FRAG_STACK_ALL = -1, FRAG_STACK_SMALL = -2, FRAG_STACK_NO_STACK = -3 };

typedef struct frag_stack_node {
    int64_t frame;  /* of the recording, or one of the above */
    uint64_t bytes; /* asked for in it or in what it called */
    uint32_t level;
    uint32_t child; /* the first, which holds most; FRAG_NODE_NONE */
    uint32_t next;  /* of the same caller */
} frag_stack_node;

typedef struct frag_stacks frag_stacks;
typedef void frag_stacks_writer(frag_stacks *stacks);

struct frag_stacks {
    frag_plot plot;
    uint64_t event; /* what is held right after it */
    uint64_t bytes;
    uint64_t *held;         /* by call site */
    frag_stack_node *nodes; /* the first is the root; none narrower than a 500th of all */
    size_t count;
    size_t capacity;
    frag_number_map node_of;   /* by caller, times 2^32, and frame */
    frag_stacks_writer *write; /* the data of the figure */
    bool is_joined;            /* on the terminal, callers with one callee have no line */
};

/* Draws a figure of that kind, whose settings have FRAG_PLOT_MOMENT_OPTION; write is called with
 * the tree. On the terminal the tree itself is printed. */
bool frag_stacks_draw(const char *kind, const frag_plot_request *request, frag_stacks_writer *write,
                      bool is_joined, frag_error *error);

/* Down to where callers meet: while a node has one callee that holds all it does, that. */
uint32_t frag_stacks_join(const frag_stacks *stacks, uint32_t node);

/* Appends the name of a frame, in at most so many characters. */
void frag_stacks_add_name(const frag_stacks *stacks, const frag_stack_node *node, size_t characters,
                          frag_text *text);
/* As much of the name as there is room for in so many pixels of a figure 800 wide; nothing where
 * that says nothing. */
void frag_stacks_add_label(const frag_stacks *stacks, const frag_stack_node *node, double pixels,
                           frag_text *text);
/* The same for a file in every figure; 0: grey. */
uint32_t frag_stacks_colour(const frag_stacks *stacks, const frag_stack_node *node);

#endif
