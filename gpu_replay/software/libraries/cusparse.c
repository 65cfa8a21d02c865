/* Sparse matrices remember their shape. A product's number of nonzeros stays what its descriptor
 * was made with: only a kernel could know it, and the report says so. */
#include "gpu_replay/software/libraries/cusparse.h"

#include <cusparse_calls.h>

enum { ROW_COUNT, COLUMN_COUNT, NONZERO_COUNT };
enum { INVALID_VALUE = 3 };

static int32_t create(void **matrix, int64_t rows, int64_t columns, int64_t nonzeros)
{
    if (matrix == NULL)
        return INVALID_VALUE;
    *matrix = frag_standin_new();
    frag_standin_set(*matrix, ROW_COUNT, (uint64_t)rows);
    frag_standin_set(*matrix, COLUMN_COUNT, (uint64_t)columns);
    frag_standin_set(*matrix, NONZERO_COUNT, (uint64_t)nonzeros);
    return 0;
}

int32_t cusparseCreateCsr(void **matrix, int64_t rows, int64_t columns, int64_t nonzeros,
                          void *offsets, void *indices, void *values, int32_t offset_type,
                          int32_t index_type, int32_t base, int32_t value_type)
{
    (void)offsets, (void)indices, (void)values, (void)offset_type, (void)index_type, (void)base;
    (void)value_type;
    return create(matrix, rows, columns, nonzeros);
}

int32_t cusparseCreateCoo(void **matrix, int64_t rows, int64_t columns, int64_t nonzeros,
                          void *row_indices, void *column_indices, void *values, int32_t index_type,
                          int32_t base, int32_t value_type)
{
    (void)row_indices, (void)column_indices, (void)values, (void)index_type, (void)base;
    (void)value_type;
    return create(matrix, rows, columns, nonzeros);
}

int32_t cusparseSpMatGetSize(void *matrix, int64_t *rows, int64_t *columns, int64_t *nonzeros)
{
    if (rows == NULL || columns == NULL || nonzeros == NULL)
        return INVALID_VALUE;
    *rows = (int64_t)frag_standin_get(matrix, ROW_COUNT);
    *columns = (int64_t)frag_standin_get(matrix, COLUMN_COUNT);
    *nonzeros = (int64_t)frag_standin_get(matrix, NONZERO_COUNT);
    if (*nonzeros == 0)
        frag_software_note("cuSPARSE", "how many nonzeros a sparse product has only a kernel "
                                       "knows; it was taken to have none");
    return 0;
}

uint64_t frag_cusparse_buffer(const void *matrix)
{
    enum { PAIR_BYTES = 16, FIXED_BYTES = 65536 };
    uint64_t rows = frag_standin_get(matrix, ROW_COUNT);
    uint64_t nonzeros = frag_standin_get(matrix, NONZERO_COUNT);
    return PAIR_BYTES * (rows + nonzeros) + FIXED_BYTES;
}

/* -1: there is no zero on the diagonal. */
static int32_t find_no_zero(void *handle, int32_t *position)
{
    if (position == NULL)
        return INVALID_VALUE;
    if (frag_standin_get(handle, FIELD_pointer_mode) == 0)
        *position = -1;
    return 0;
}

int32_t cusparseXbsrsm2_zeroPivot(void *handle, void *information, void *position)
{
    (void)information;
    return find_no_zero(handle, position);
}

int32_t cusparseXbsrsv2_zeroPivot(void *handle, void *information, void *position)
{
    (void)information;
    return find_no_zero(handle, position);
}

typedef struct error_text {
    const char *name;
    const char *sentence;
} error_text;

static error_text find_error(int32_t status)
{
    static const error_text errors[] = {
        {"CUSPARSE_STATUS_SUCCESS", "success"},
        {"CUSPARSE_STATUS_NOT_INITIALIZED", "initialization error"},
        {"CUSPARSE_STATUS_ALLOC_FAILED", "out of memory"},
        {"CUSPARSE_STATUS_INVALID_VALUE", "invalid value"},
        {"CUSPARSE_STATUS_ARCH_MISMATCH", "architecture mismatch"},
        {"CUSPARSE_STATUS_MAPPING_ERROR", "texture mapping error"},
        {"CUSPARSE_STATUS_EXECUTION_FAILED", "kernel launch failure"},
        {"CUSPARSE_STATUS_INTERNAL_ERROR", "internal error"},
        {"CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED", "matrix type not supported"},
        {"CUSPARSE_STATUS_ZERO_PIVOT", "zero pivot"},
        {"CUSPARSE_STATUS_NOT_SUPPORTED", "operation not supported"},
        {"CUSPARSE_STATUS_INSUFFICIENT_RESOURCES", "insufficient resources"},
    };
    bool is_known = status >= 0 && (size_t)status < sizeof errors / sizeof *errors;
    return is_known ? errors[status] : (error_text){"CUSPARSE_STATUS_UNKNOWN", "unknown error"};
}

const char *frag_cusparse_error_name(int32_t status)
{
    return find_error(status).name;
}

const char *frag_cusparse_error_string(int32_t status)
{
    return find_error(status).sentence;
}
