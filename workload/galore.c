#include "workload/galore.h"

#include "base/memory.h"

struct frag_galore {
    const frag_model *model;
    frag_tensor *bases; /* of each parameter: what its gradient is projected onto */
    uint64_t steps;
};

/* Names of Python that live on while the next parameter is looked at. */
typedef struct step_names {
    frag_tensor gradient; /* that was projected */
    frag_tensor denominator;
    frag_tensor update;
} step_names;

/* A matrix, of which so many dimensions are kept. */
typedef struct projection {
    uint64_t rows;
    uint64_t columns;
    uint64_t least; /* of both */
    uint64_t rank;
    frag_dtype dtype;
    bool is_right; /* rows stay, columns are projected */
} projection;

frag_galore *frag_galore_create(const frag_model *model)
{
    frag_galore *galore = frag_alloc(1, sizeof *galore);
    galore->model = model;
    galore->bases = frag_alloc((size_t)model->parameter_count + 1, sizeof *galore->bases);
    return galore;
}

void frag_galore_destroy(frag_galore *galore)
{
    if (galore == NULL)
        return;
    frag_free(galore->bases);
    frag_free(galore);
}

/* A linear layer of a block. */
static bool is_projected(const frag_model *model, uint32_t i)
{
    return model->forms[i].shape.rows > 0 && i >= model->block_starts[0] &&
           i < model->block_starts[model->block_start_count - 1];
}

static projection project(const frag_tape *tape, const frag_model *model, uint32_t i)
{
    const frag_shape *shape = &model->forms[i].shape;
    uint64_t rank = model->workload->galore_rank;
    uint64_t least = shape->rows < shape->columns ? shape->rows : shape->columns;
    return (projection){.rows = shape->rows,
                        .columns = shape->columns,
                        .least = least,
                        .rank = rank < least ? rank : least,
                        .dtype = frag_tape_dtype(tape, model->parameters[i]),
                        .is_right = shape->rows >= shape->columns};
}

static frag_tensor multiply(frag_tape *tape, uint64_t count, frag_dtype dtype)
{
    frag_tensor made = frag_tape_empty(tape, count, dtype);
    frag_tape_use_blas(tape);
    return made;
}

/* What cusolverDnSgesvdj asks for is not known: between a number for each row or column, and the
 * most that a dry run takes it to be. */
static void use_workspace(frag_tape *tape, const projection *of)
{
    uint64_t m = of->rows;
    uint64_t n = of->columns;
    uint64_t most = 2 * m * n + 2 * n * n + 8 * (m + n);
    uint64_t least = m > n ? m : n;
    frag_tape_use_workspace(tape, least * sizeof(float), most * sizeof(float));
}

/* torch.linalg.svd(matrix, full_matrices=False), in fp32. */
static void decompose(frag_tape *tape, const projection *of, frag_tensor *left, frag_tensor *right,
                      frag_tensor *values)
{
    *left = frag_tape_empty(tape, of->rows * of->least, FRAG_F32);
    *right = frag_tape_empty(tape, of->least * of->columns, FRAG_F32);
    *values = frag_tape_empty(tape, of->least, FRAG_F32);
    frag_tensor info = frag_tape_empty(tape, 1, FRAG_I32);
    frag_tensor copy = frag_tape_empty(tape, of->rows * of->columns, FRAG_F32);
    use_workspace(tape, of);
    frag_tape_drop(tape, copy);
    frag_tensor is_wrong = frag_tape_empty(tape, 1, FRAG_BOOL);
    frag_tape_drop(tape, frag_tape_empty(tape, 1, FRAG_BOOL));
    frag_tape_drop(tape, is_wrong);
    frag_tape_drop(tape, info);
}

/* get_orthogonal_matrix: the first vectors, in fp32 with all others behind them, and a product of
 * the other side's that nobody asks for. */
static frag_tensor make_base(frag_tape *tape, const projection *of)
{
    bool is_wide = of->dtype == FRAG_F32;
    frag_tensor matrix = is_wide ? 0 : frag_tape_empty(tape, of->rows * of->columns, FRAG_F32);
    frag_tensor left = 0;
    frag_tensor right = 0;
    frag_tensor values = 0;
    decompose(tape, of, &left, &right, &values);
    uint64_t kept = of->rank * (of->is_right ? of->columns : of->rows);
    uint64_t others = of->rank * (of->is_right ? of->rows : of->columns);
    frag_tensor diagonal = frag_tape_empty(tape, of->rank * of->rank, FRAG_F32);
    frag_tensor product = multiply(tape, others, FRAG_F32);
    frag_tape_drop(tape, diagonal);
    frag_tensor base = is_wide ? frag_tape_keep(tape, of->is_right ? right : left)
                               : frag_tape_empty(tape, kept, of->dtype);
    frag_tape_drop(tape, matrix);
    frag_tape_drop(tape, left);
    frag_tape_drop(tape, right);
    frag_tape_drop(tape, values);
    frag_tape_drop(tape, product);
    return base;
}

/* AdamW over a gradient of so many elements: the averages at first, then what moves the weight. */
static void average(frag_tape *tape, const frag_galore *galore, uint64_t count, frag_dtype dtype,
                    step_names *names)
{
    frag_request_kind was = frag_tape_set_kind(tape, FRAG_REQUEST_OPTIMIZER);
    for (uint32_t i = 0; i < 2 && galore->steps == 0; i++)
        (void)frag_tape_empty(tape, count, dtype);
    frag_tape_set_kind(tape, was);
    frag_tape_set(tape, &names->denominator, frag_tape_empty(tape, count, dtype));
    frag_tape_set(tape, &names->update, frag_tape_empty(tape, count, dtype));
}

static void step_projected(frag_tape *tape, frag_galore *galore, uint32_t i, step_names *names)
{
    const projection of = project(tape, galore->model, i);
    frag_tape_clear(tape, &names->gradient);
    if (galore->steps % galore->model->workload->galore_gap == 0) {
        frag_request_kind was = frag_tape_set_kind(tape, FRAG_REQUEST_OPTIMIZER);
        frag_tape_set(tape, &galore->bases[i], make_base(tape, &of));
        frag_tape_set_kind(tape, was);
    }
    uint64_t count = of.rank * (of.is_right ? of.rows : of.columns);
    names->gradient = multiply(tape, count, of.dtype);
    average(tape, galore, count, of.dtype, names);
    frag_tensor whole = multiply(tape, of.rows * of.columns, of.dtype);
    frag_tape_set(tape, &names->update, frag_tape_empty(tape, of.rows * of.columns, of.dtype));
    frag_tape_drop(tape, whole);
}

/* Two groups of parameters: those that stay as they are come first. */
void frag_galore_step(frag_tape *tape, frag_galore *galore)
{
    const frag_model *model = galore->model;
    step_names names = {0};
    for (uint32_t group = 0; group < 2; group++)
        for (uint32_t i = 0; i < model->parameter_count; i++) {
            frag_tensor parameter = model->parameters[i];
            if (frag_tape_gradient(tape, parameter) == 0 || is_projected(model, i) != (group == 1))
                continue;
            if (group == 1)
                step_projected(tape, galore, i, &names);
            else
                average(tape, galore, frag_tape_count(tape, parameter),
                        frag_tape_dtype(tape, parameter), &names);
        }
    frag_tape_drop(tape, names.gradient);
    frag_tape_drop(tape, names.denominator);
    frag_tape_drop(tape, names.update);
    galore->steps++;
}
