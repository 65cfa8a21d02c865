/* Operators of PyTorch over the tape: what each allocates, saves, and does in backward.
 *
 * Arguments are borrowed, results owned. Elementwise operators broadcast by count: the smaller
 * operand is repeated. Where a result's layout matters the caller says so (contiguous or not), as
 * the tape keeps no strides. */
#ifndef FRAG_TAPE_ATEN_H
#define FRAG_TAPE_ATEN_H

#include "workload/tape/tape.h"

/* ---- gradients that several operators share (aten_elementwise.c) */
/* The gradient as it came, of each input that wants one. */
void frag_aten_pass_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                             frag_tensor *out);
/* One of numbers[0] elements: a part of what came, or zeros and what came in its places. */
void frag_aten_resize_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                               frag_tensor *out);

/* ---- elementwise (aten_elementwise.c) */
frag_tensor frag_aten_add(frag_tape *tape, frag_tensor self, frag_tensor other);
frag_tensor frag_aten_sub(frag_tape *tape, frag_tensor self, frag_tensor other);
/* self += other: self is used up, the result lies in its place. */
frag_tensor frag_aten_add_in_place(frag_tape *tape, frag_tensor self, frag_tensor other);
frag_tensor frag_aten_mul(frag_tape *tape, frag_tensor self, frag_tensor other);
/* Complex numbers, each two of fp32, times some that need no gradient. */
frag_tensor frag_aten_mul_complex(frag_tape *tape, frag_tensor self, frag_tensor other);
/* A number for each channel times x; is_turned: the gradient lies with channels before pixels. */
frag_tensor frag_aten_scale(frag_tape *tape, frag_tensor numbers, frag_tensor x, bool is_turned);
frag_tensor frag_aten_add_scalar(frag_tape *tape, frag_tensor self);
frag_tensor frag_aten_mul_scalar(frag_tape *tape, frag_tensor self); /* div, neg too */
frag_tensor frag_aten_pow(frag_tape *tape, frag_tensor self);
frag_tensor frag_aten_rsqrt(frag_tape *tape, frag_tensor self);
frag_dtype frag_aten_wider(frag_dtype a, frag_dtype b); /* of an operator's result */
frag_tensor frag_aten_tanh(frag_tape *tape, frag_tensor self);
frag_tensor frag_aten_sigmoid(frag_tape *tape, frag_tensor self);
frag_tensor frag_aten_gelu(frag_tape *tape, frag_tensor self);
frag_tensor frag_aten_silu(frag_tape *tape, frag_tensor self);
frag_tensor frag_aten_relu(frag_tape *tape, frag_tensor self);
frag_tensor frag_aten_relu_in_place(frag_tape *tape, frag_tensor self); /* uses up self */
/* silu_, hardswish_ and relu6_, which save a copy of what goes in: self is used up. */
frag_tensor frag_aten_map_in_place(frag_tape *tape, frag_tensor self);
frag_tensor frag_aten_hardsigmoid(frag_tape *tape, frag_tensor self);
frag_tensor frag_aten_exp(frag_tape *tape, frag_tensor self);
frag_tensor frag_aten_minimum(frag_tape *tape, frag_tensor self, frag_tensor other);
/* clamp(self, low, high) by tensors of one number; 0: by numbers of the program */
frag_tensor frag_aten_clamp(frag_tape *tape, frag_tensor self, frag_tensor low, frag_tensor high);
/* self.masked_fill(mask, a number) */
frag_tensor frag_aten_masked_fill(frag_tape *tape, frag_tensor self, frag_tensor mask);
/* clamp(self, max=a number) */
frag_tensor frag_aten_clamp_one(frag_tape *tape, frag_tensor self);
/* where(condition, self, a number) */
frag_tensor frag_aten_where(frag_tape *tape, frag_tensor condition, frag_tensor self);
/* The same by a buffer, with a tensor of one number, both of which stay in any case. */
frag_tensor frag_aten_where_other(frag_tape *tape, frag_tensor self);
/* is_active: training with a probability above 0; else the tensor itself. */
frag_tensor frag_aten_dropout(frag_tape *tape, frag_tensor self, bool is_active);
/* The same in place: self is used up. */
frag_tensor frag_aten_dropout_in_place(frag_tape *tape, frag_tensor self, bool is_active);
/* The same of a view of all elements, which autograd then makes anew out of what it is of. */
frag_tensor frag_aten_dropout_in_view(frag_tape *tape, frag_tensor self, bool is_active);

/* ---- shapes (aten_shape.c) */
frag_tensor frag_aten_view(frag_tape *tape, frag_tensor self); /* any view with all elements */
/* pad(self, (0, n)) of rows to count elements in all, and the view of what was there. */
frag_tensor frag_aten_pad(frag_tape *tape, frag_tensor self, uint64_t count);
/* As above, where backward's reshape must copy. */
frag_tensor frag_aten_view_copied(frag_tape *tape, frag_tensor self);
/* A view of a number for each row, whose gradient is summed along rows. */
frag_tensor frag_aten_view_column(frag_tape *tape, frag_tensor self);
frag_tensor frag_aten_unsafe_view(frag_tape *tape, frag_tensor self); /* uses up self */
frag_tensor frag_aten_contiguous(frag_tape *tape, frag_tensor self);  /* of what is not: a copy */
frag_tensor frag_aten_alias(frag_tape *tape, frag_tensor self); /* x[...]: the gradient itself */
/* Equal parts along a dimension, as views. */
void frag_aten_split(frag_tape *tape, frag_tensor self, frag_tensor *parts, uint32_t count);
/* As many parts of any size as are taken one after the other out of what begin returns. */
frag_tensor frag_aten_split_begin(frag_tape *tape, frag_tensor self);
frag_tensor frag_aten_split_next(frag_tape *tape, frag_tensor whole, uint64_t count);
frag_tensor frag_aten_slice(frag_tape *tape, frag_tensor self, uint64_t count);
/* expand: a view of more elements, which repeat. Its gradient is summed. */
frag_tensor frag_aten_expand(frag_tape *tape, frag_tensor self, uint64_t count);
/* self.repeat(times, 1, 1), a copy in any case. */
frag_tensor frag_aten_repeat(frag_tape *tape, frag_tensor self, uint64_t times);
/* self[..., a part] = source, the next part of a tensor that was empty; self is used up. */
frag_tensor frag_aten_write(frag_tape *tape, frag_tensor self, frag_tensor source);
/* first may be 0: an empty tensor. dtype: the wider of both. */
frag_tensor frag_aten_cat(frag_tape *tape, frag_tensor first, frag_tensor second, frag_dtype dtype);

/* The same of any number of parts. */
frag_tensor frag_aten_cat_all(frag_tape *tape, const frag_tensor *parts, uint64_t count,
                              frag_dtype dtype);
/* The same of one type, of one part too; gradients are handed on in the order of parts. */
frag_tensor frag_aten_cat_parts(frag_tape *tape, const frag_tensor *parts, uint64_t count);

/* ---- matrices (aten_matrix.c): of rows x inner and inner x columns */
typedef struct frag_matrix_shape {
    uint64_t rows;
    uint64_t inner;
    uint64_t columns;
} frag_matrix_shape;

/* torch.addmm(bias, x, weight), weight as it lies. */
frag_tensor frag_aten_addmm(frag_tape *tape, frag_tensor bias, frag_tensor x, frag_tensor weight,
                            uint64_t columns);
/* nn.functional.linear: weight is [out, in]; bias may be 0. */
frag_tensor frag_aten_linear(frag_tape *tape, frag_tensor x, frag_tensor weight, frag_tensor bias,
                             uint64_t columns);
/* The same, where the gradient comes with channels before pixels, of so many images: with several
 * it is copied, with one the bias's is summed along what lies together. 0: as above. */
frag_tensor frag_aten_linear_turned(frag_tape *tape, frag_tensor x, const frag_tensor of[2],
                                    uint64_t columns, uint64_t images);
/* The same of a matrix: of nothing a view is taken. */
frag_tensor frag_aten_linear_flat(frag_tape *tape, frag_tensor x, const frag_tensor of[2],
                                  uint64_t columns);
/* The same of an input that lies with channels before pixels, of so many images: a product alone,
 * then the bias in place. */
frag_tensor frag_aten_linear_apart(frag_tape *tape, frag_tensor x, const frag_tensor of[2],
                                   uint64_t columns, uint64_t images);

/* nn.functional.linear, without a bias, of a part of each sequence of a batch: matmul lays it out
 * for the sake of the weight's gradient, unless a cast has; without one each sequence is multiplied
 * as it lies. */
frag_tensor frag_aten_linear_cut(frag_tape *tape, frag_tensor x, frag_tensor weight,
                                 uint64_t columns);

/* Products of as many matrices, count elements in all. */
frag_tensor frag_aten_bmm(frag_tape *tape, frag_tensor self, frag_tensor other, uint64_t count);
/* The same, scaled, and added to numbers that need no gradient and are spread over it. */
frag_tensor frag_aten_baddbmm(frag_tape *tape, frag_tensor numbers, const frag_tensor factors[2],
                              uint64_t count);

/* ---- weights of 4 and 8 bits (aten_packed.c) */
typedef struct frag_aten_packed {
    uint64_t rows;
    uint64_t columns;
    frag_dtype dtype;  /* that products are made in */
    bool is_int8;      /* with 8 bits; else with 4 */
    bool is_nested;    /* the scales of blocks of 4 bits are quantised too */
    bool is_flat;      /* the input is a matrix, whose rows may lie apart */
    frag_tensor *bias; /* NULL: none; the first product brings it into its type */
} frag_aten_packed;

/* nn.functional.linear by factors in 8 bits, as torchao has it (aten_float8.c); bias may be 0. */
frag_tensor frag_aten_linear_float8(frag_tape *tape, frag_tensor x, frag_tensor weight,
                                    frag_tensor bias, uint64_t columns);

/* x times the turned weight, in the type of x; images: as of frag_aten_linear_turned. */
frag_tensor frag_aten_linear_packed(frag_tape *tape, frag_tensor x, const frag_aten_packed *of,
                                    uint64_t images);
/* Is a weight of 4 bits multiplied as it is (packed_kernels.c)? Else it is unpacked before. */
typedef struct frag_packed_shape {
    uint64_t outputs;
    uint64_t inner;
} frag_packed_shape;
bool frag_aten_has_packed_kernel(const frag_tape *tape, frag_dtype dtype, uint64_t rows,
                                 frag_packed_shape shape);
/* Moves a weight to the GPU in its type and packs it there; is_first: of all. */
frag_tensor frag_aten_pack(frag_tape *tape, const frag_aten_packed *of, bool is_first);

/* ---- layers (aten_layer.c) */
frag_tensor frag_aten_embedding(frag_tape *tape, frag_tensor weight, frag_tensor ids,
                                uint64_t width);
/* The same, whose gradient comes in another order and is copied. */
frag_tensor frag_aten_embedding_turned(frag_tape *tape, frag_tensor weight, frag_tensor ids,
                                       uint64_t width);
/* nn.EmbeddingBag that sums; is_turned as above. is_sparse: the gradient has a row for each index.
 */
typedef struct frag_embedding_bag {
    frag_tensor weight, indices, offsets;
    uint64_t width;
    bool is_turned;
    bool is_sparse;
} frag_embedding_bag;
frag_tensor frag_aten_embedding_bag(frag_tape *tape, const frag_embedding_bag *of);
/* Of a norm or a convolution. */
typedef struct frag_pair {
    frag_tensor weight, bias;
} frag_pair;
frag_tensor frag_aten_layer_norm(frag_tape *tape, frag_tensor x, const frag_pair *of,
                                 uint64_t width);
/* The same in the type of x, whatever autocast says. */
frag_tensor frag_aten_layer_norm_typed(frag_tape *tape, frag_tensor x, const frag_pair *of,
                                       uint64_t width);
/* The same of what lies with channels before pixels, which is copied first; and where its gradient
 * does as well. */
typedef enum frag_norm_layout {
    FRAG_NORM_PLAIN,
    FRAG_NORM_TURNED,
    FRAG_NORM_TURNED_BOTH,
    FRAG_NORM_GAPS, /* its gradient is a part of another, and is laid out */
} frag_norm_layout;
frag_tensor frag_aten_layer_norm_laid(frag_tape *tape, frag_tensor x, const frag_pair *of,
                                      uint64_t width, frag_norm_layout layout);
/* nn.RMSNorm of rows of that width. FRAG_NORM_TURNED: of a part of rows, which is copied first. */
frag_tensor frag_aten_rms_norm(frag_tape *tape, frag_tensor x, frag_tensor weight, uint64_t width,
                               frag_norm_layout layout);
frag_tensor frag_aten_mean_last(frag_tape *tape, frag_tensor x, uint64_t width);
/* The mean of so many pixels, for each channel of each image; x has channels last. */
frag_tensor frag_aten_mean_pixels(frag_tape *tape, frag_tensor x, uint64_t pixels);
/* Mean over the targets; logits are [rows, classes]. */
frag_tensor frag_aten_cross_entropy(frag_tape *tape, frag_tensor logits, frag_tensor targets);
/* In fp32 under autocast; what does not lie in one piece is laid out first. */
frag_tensor frag_aten_log_softmax(frag_tape *tape, frag_tensor self);
/* self.gather(-1, index) of rows, one number of each */
frag_tensor frag_aten_choose(frag_tape *tape, frag_tensor self, frag_tensor index);
/* binary_cross_entropy_with_logits, the mean. */
frag_tensor frag_aten_binary_cross_entropy(frag_tape *tape, frag_tensor logits,
                                           frag_tensor targets);
/* The mean of the squared differences. */
frag_tensor frag_aten_mse_loss(frag_tape *tape, frag_tensor self, frag_tensor target);

/* ---- images (aten_convolution.c) */
/* What goes over an image with equal sides. */
typedef struct frag_window {
    uint64_t side; /* of the image, in pixels */
    uint64_t kernel;
    uint64_t stride;
    uint64_t padding;
} frag_window;

/* The side of what comes out. */
uint64_t frag_aten_window_side(const frag_window *of);

typedef struct frag_aten_convolution {
    frag_tensor weight;
    frag_tensor bias; /* 0: none */
    uint64_t batch;
    uint64_t in_channels;
    uint64_t out_channels;
    frag_window window;
    uint64_t groups;       /* of channels, each convolved alone; 0: one */
    bool is_depthwise;     /* each channel is a group of its own */
    bool is_line;          /* Conv1d: the image is one row of pixels */
    bool is_channels_last; /* x has channels last, and so have all that is made of it */
    bool is_turned;        /* its gradient comes in the other order of both and is copied */
    bool has_gaps; /* its gradient is a part of another, and copied for each of both results */
} frag_aten_convolution;

frag_tensor frag_aten_convolve(frag_tape *tape, frag_tensor x, const frag_aten_convolution *of);
/* pixels: of an image. */
frag_tensor frag_aten_batch_norm(frag_tape *tape, frag_tensor x, const frag_pair *of,
                                 uint64_t pixels, bool is_training);
frag_tensor frag_aten_max_pool(frag_tape *tape, frag_tensor x, const frag_window *window);
/* adaptive_avg_pool2d and avg_pool2d: means of pixels, so many along a side, 2 or more. */
frag_tensor frag_aten_average_pool(frag_tape *tape, frag_tensor x, uint64_t side_before,
                                   uint64_t side);

/* ---- images of diffusion (aten_image.c) */
typedef struct frag_aten_groups {
    frag_tensor weight;
    frag_tensor bias;
    uint64_t images;
    uint64_t groups; /* of channels */
    bool is_turned;  /* its gradient comes with channels last */
} frag_aten_groups;

frag_tensor frag_aten_group_norm(frag_tape *tape, frag_tensor x, const frag_aten_groups *of);
/* interpolate(scale_factor=2, mode="nearest") */
frag_tensor frag_aten_upsample(frag_tape *tape, frag_tensor x);

typedef struct frag_attention_shape {
    uint64_t batch;
    uint64_t heads;
    uint64_t key_heads; /* fewer: grouped queries */
    uint64_t queries;   /* tokens */
    uint64_t keys;
    uint64_t width;       /* of a head */
    uint64_t value_width; /* of its values, if they have another; 0: they do not */
    bool has_dropout;
    bool is_causal;
    bool is_cached;      /* keys and values come out of a cache, heads before tokens */
    bool is_heads_first; /* queries lie with heads before tokens, not the other way around */
    bool is_value_apart; /* but values, unless they come out of a cache, have tokens before heads */
    bool is_shared;      /* the one head of keys and values is spread by the products themselves */
    bool is_gradient_cut; /* its gradient is a part of each row of another, and is laid out first */
    bool is_packed;       /* heads of one key are queries, all of one token; without gradients */
    frag_tensor mask;     /* numbers that are added to the scores of each sequence; 0: none */
    frag_tensor seen;     /* frag_aten_seen, which becomes such a mask; 0: none */
} frag_attention_shape;

/* scaled_dot_product_attention: flash for half types, memory-efficient for fp32, and separate
 * operators where neither takes the inputs. */
frag_tensor frag_aten_attention(frag_tape *tape, const frag_tensor qkv[3],
                                const frag_attention_shape *shape);

/* repeat_interleave of key heads, so that there are as many as heads. */
frag_tensor frag_aten_repeat_heads(frag_tape *tape, frag_tensor x,
                                   const frag_attention_shape *shape);

/* transformers' repeat_kv: the same by expand and reshape, which of one head is a view. */
frag_tensor frag_aten_repeat_keys(frag_tape *tape, frag_tensor x,
                                  const frag_attention_shape *shape);

/* ---- attention with its scores as a tensor (aten_eager.c) */
/* torch.matmul of two stacks of matrices: each is laid out first, if it must be copied for that. */
typedef struct frag_matmul {
    uint64_t count; /* elements of the result */
    bool is_self_copied;
    bool is_other_copied;
    bool is_other_expanded; /* one head as several: it is copied where no cast has */
    bool is_other_turned;   /* matrices the other way around, where they are not copied */
    bool is_gradient_copied;
} frag_matmul;

frag_tensor frag_aten_matmul(frag_tape *tape, frag_tensor self, frag_tensor other,
                             const frag_matmul *how);

/* In which type scores become shares. */
typedef enum frag_eager_softmax {
    FRAG_EAGER_WIDE,     /* fp32, and back to the type of queries */
    FRAG_EAGER_OWN,      /* that of the scores; fp32 under autocast */
    FRAG_EAGER_OWN_BACK, /* the same, then the type of values */
} frag_eager_softmax;

typedef struct frag_eager_attention {
    frag_attention_shape shape;
    frag_tensor mask;  /* added to the scores; 0: none */
    bool has_cap;      /* cap * tanh(scores / cap) */
    bool is_cached;    /* keys and values come out of a cache, heads before tokens */
    frag_tensor sinks; /* a score for each head beside those of tokens; 0: none */
    frag_eager_softmax softmax;
    bool is_part; /* queries are a part of a tensor that has keys and values too */
} frag_eager_attention;

/* transformers' eager_attention_forward; what is handed out besides, weights, is owned too. */
frag_tensor frag_aten_eager_attention(frag_tape *tape, const frag_tensor qkv[3],
                                      const frag_eager_attention *how, frag_tensor *weights);
/* Which keys a query sees: those before it, or those within a window; for all sequences alike. */
frag_tensor frag_aten_seen(frag_tape *tape, const frag_attention_shape *shape, bool has_window);
/* The same of keys no farther away than a distance, before a query or behind it. */
frag_tensor frag_aten_seen_near(frag_tape *tape, const frag_attention_shape *shape);
/* where(seen, 0, the lowest number), for each sequence. */
frag_tensor frag_aten_where_seen(frag_tape *tape, const frag_attention_shape *shape,
                                 frag_dtype dtype);
/* The mask of eager attention, made of both. */
frag_tensor frag_aten_causal_mask(frag_tape *tape, const frag_attention_shape *shape,
                                  bool has_window, frag_dtype dtype);

/* What softmax and log_softmax save: what went in, where that is kept, before what comes out.
 * numbers[0]: the type of what went in. */
void frag_aten_save_softmax(frag_tape *tape, frag_node *node, frag_tensor scores, frag_tensor made);

/* softmax in fp32; is_cast: of scores.float(), where else fp16 is read as it is. */
frag_tensor frag_aten_softmax(frag_tape *tape, frag_tensor scores, bool is_cast);

/* The same in the type of the scores, whatever autocast says. */
frag_tensor frag_aten_softmax_typed(frag_tape *tape, frag_tensor scores);
/* x.max(dim=-1, keepdim=True).values of rows of that width */
frag_tensor frag_aten_max_last(frag_tape *tape, frag_tensor x, uint64_t width);

/* What a running sum of so many elements, FRAG_I64 or FRAG_F32, or (I32) the choice among them,
 * takes besides its result. */
void frag_aten_scan(frag_tape *tape, uint64_t items, frag_dtype dtype);

/* Is that kernel flash, for inputs of that type or autocast's? Its gradients lie as its inputs do.
 */
bool frag_aten_is_flash(const frag_tape *tape, frag_dtype dtype);
/* Does no kernel take them, so that separate operators serve? bf16 before capability 8.0, or where
 * the tape's kernel is math or none. */
bool frag_aten_is_unknown(const frag_tape *tape, frag_dtype dtype);
/* Is x, the output of a linear layer that is about to be split into queries (0), keys or values,
 * one whose gradient separate operators turn? Those of keys are matrices the other way around, one
 * for each sequence, which the layer takes as they are where there is one. */
bool frag_aten_is_turned(const frag_tape *tape, frag_tensor x, uint32_t input, uint64_t batch);

/* The bytes that a sum takes besides its result, where it is cut into several parts: outputs sums
 * of inputs elements each, along the fastest dimension or not. Allocated and freed. */
typedef struct frag_reduction {
    uint64_t outputs;
    uint64_t inputs;
    bool is_fastest;
    uint64_t bytes; /* of what is carried for each sum; 0: 4 */
} frag_reduction;
void frag_aten_reduce_buffers(frag_tape *tape, const frag_reduction *reduction);
/* Of rows of that width, without a gradient: the place of the largest of each, and how many of a
 * mask are true. */
frag_tensor frag_aten_argmax(frag_tape *tape, uint64_t rows, uint64_t width);
frag_tensor frag_aten_count(frag_tape *tape, uint64_t rows, uint64_t width);
frag_tensor frag_aten_sum(frag_tape *tape, frag_tensor self, const frag_reduction *of);

/* ---- parts of layers on several devices (aten_parallel.c) */
/* The tensor again, whose gradient is added up over the devices. */
frag_tensor frag_aten_replicate(frag_tape *tape, frag_tensor self);
/* The part of the input that goes with a part of the weight's columns. */
frag_tensor frag_aten_from_local(frag_tape *tape, frag_tensor self);
/* The sum over the devices; uses up self. */
frag_tensor frag_aten_all_reduce(frag_tape *tape, frag_tensor self);

/* Equal parts of so many devices, in one piece on the first of them; is it this one? On others
 * nothing is made. */
typedef struct frag_gather {
    uint64_t devices;
    bool is_here;
} frag_gather;
frag_tensor frag_aten_gather_devices(frag_tape *tape, frag_tensor self, const frag_gather *to);
frag_tensor frag_aten_mean(frag_tape *tape, frag_tensor self); /* of a few numbers */

/* ---- experts (aten_experts.c) */
/* The largest of each row, count in all, and their places. */
frag_tensor frag_aten_topk(frag_tape *tape, frag_tensor self, uint64_t count, frag_tensor *indices);
/* self /= other: self is used up. */
frag_tensor frag_aten_divide_in_place(frag_tape *tape, frag_tensor self, frag_tensor other);
/* self[index], rows of that width. */
frag_tensor frag_aten_gather(frag_tape *tape, frag_tensor self, frag_tensor index, uint64_t width);
/* self.index_select(0, index), rows of that width. */
frag_tensor frag_aten_select_rows(frag_tape *tape, frag_tensor self, frag_tensor index,
                                  uint64_t width);
/* zeros(rows, width).scatter_add_(0, index.expand_as(source), source) */
frag_tensor frag_aten_scatter_rows(frag_tape *tape, frag_tensor source, frag_tensor index,
                                   uint64_t rows);
/* self.index_add_(0, index, source): self is used up. */
frag_tensor frag_aten_index_add_in_place(frag_tape *tape, frag_tensor self, frag_tensor index,
                                         frag_tensor source);
/* The places of items that are not 0, a number for each dimension. */
typedef struct frag_nonzero {
    uint64_t items;
    uint64_t found;
    uint64_t dimensions;
    bool is_strided; /* int64 with gaps, which are laid out first */
} frag_nonzero;
frag_tensor frag_aten_nonzero(frag_tape *tape, const frag_nonzero *of);
/* self[rows, columns, None] of a matrix; index: one of both. */
frag_tensor frag_aten_pick(frag_tape *tape, frag_tensor self, frag_tensor index);
/* self[arange(matrices), columns] of matrices with rows of that width; a column for each. */
frag_tensor frag_aten_pick_rows(frag_tape *tape, frag_tensor self, frag_tensor columns,
                                uint64_t width);
/* self[:, rows, columns] of matrices, the numbers of so many places on the host. */
frag_tensor frag_aten_pick_places(frag_tape *tape, frag_tensor self, uint64_t matrices,
                                  uint64_t places);
/* torch._grouped_mm of rows with a matrix for each group of them. */
frag_tensor frag_aten_grouped_mm(frag_tape *tape, frag_tensor x, frag_tensor weight,
                                 frag_tensor offsets, const frag_matrix_shape *shape);
/* What torch.sort of so many numbers takes besides its results; and index_put_, which adds up rows
 * of equal numbers, of a table of so many rows that are named by so many indices. */
void frag_aten_sort(frag_tape *tape, uint64_t count);
/* Of cub's sort of so many keys of so many values: what it takes besides its results. */
void frag_aten_sort_keys(frag_tape *tape, uint64_t count, uint64_t values);
void frag_aten_sort_rows(frag_tape *tape, uint64_t count, uint64_t rows, uint64_t indices);

#endif
