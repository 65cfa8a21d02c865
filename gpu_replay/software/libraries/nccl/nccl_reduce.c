/* Reductions of what is known, element by element. */
#include "gpu_replay/software/libraries/nccl/nccl_types.h"

#include <string.h>

enum { INT8, UINT8, INT32, UINT32, INT64, UINT64, HALF, FLOAT, DOUBLE, BFLOAT16, FP8_A, FP8_B };
enum { SUM, PRODUCT, MAX, MIN, AVERAGE };

size_t frag_nccl_type_bytes(int type)
{
    static const unsigned char bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return type >= 0 && (size_t)type < sizeof bytes ? bytes[type] : 0;
}

static float from_half(uint16_t half)
{
    uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
    float value;
    if (exponent == 0) {
        value = (float)fraction / 16777216.0f;
    } else {
        uint32_t bits = (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
        memcpy(&value, &bits, sizeof value);
    }
    return half & 0x8000 ? -value : value;
}

/* To the nearest, ties to even. */
static uint16_t to_half(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t size = bits & 0x7fffffff;
    if (size > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (size >= 0x477ff000)
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x38800000) {
        float scaled = (value < 0 ? -value : value) * 16777216.0f;
        uint32_t whole = (uint32_t)scaled;
        float rest = scaled - (float)whole;
        whole += rest > 0.5f || (rest == 0.5f && (whole & 1));
        return (uint16_t)(sign | whole);
    }
    uint32_t rounded = size - 0x38000000 + 0xfff + (size >> 13 & 1);
    return (uint16_t)(sign | rounded >> 13);
}

static float from_bfloat16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint16_t to_bfloat16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Signed sums and products wrap, as on the device: they are done without a sign. */
#define COMBINE(type, unsigned_type)                                                               \
    static void combine_##type(int operation, type *sum, const type *term, size_t count)           \
    {                                                                                              \
        for (size_t i = 0; i < count; i++) {                                                       \
            unsigned_type a = (unsigned_type)sum[i], b = (unsigned_type)term[i];                   \
            if (operation == SUM || operation == AVERAGE)                                          \
                sum[i] = (type)(unsigned_type)(a + b);                                             \
            else if (operation == PRODUCT)                                                         \
                sum[i] = (type)(unsigned_type)(a * b);                                             \
            else if (operation == MAX ? term[i] > sum[i] : term[i] < sum[i])                       \
                sum[i] = term[i];                                                                  \
        }                                                                                          \
    }
COMBINE(int8_t, uint32_t)
COMBINE(uint8_t, uint32_t)
COMBINE(int32_t, uint32_t)
COMBINE(uint32_t, uint32_t)
COMBINE(int64_t, uint64_t)
COMBINE(uint64_t, uint64_t)
COMBINE(float, float)
COMBINE(double, double)

static void combine_16(int type, int operation, uint16_t *sum, const uint16_t *term, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool is_half = type == HALF;
        float a = is_half ? from_half(sum[i]) : from_bfloat16(sum[i]);
        float b = is_half ? from_half(term[i]) : from_bfloat16(term[i]);
        combine_float(operation, &a, &b, 1);
        sum[i] = is_half ? to_half(a) : to_bfloat16(a);
    }
}

bool frag_nccl_reduce(int type, int operation, void *sum, const void *term, size_t count)
{
    if (operation < SUM || operation > AVERAGE)
        return false;
    switch (type) {
    case INT8:
        return combine_int8_t(operation, sum, term, count), true;
    case UINT8:
        return combine_uint8_t(operation, sum, term, count), true;
    case INT32:
        return combine_int32_t(operation, sum, term, count), true;
    case UINT32:
        return combine_uint32_t(operation, sum, term, count), true;
    case INT64:
        return combine_int64_t(operation, sum, term, count), true;
    case UINT64:
        return combine_uint64_t(operation, sum, term, count), true;
    case FLOAT:
        return combine_float(operation, sum, term, count), true;
    case DOUBLE:
        return combine_double(operation, sum, term, count), true;
    case HALF:
    case BFLOAT16:
        return combine_16(type, operation, sum, term, count), true;
    default:
        return false;
    }
}

bool frag_nccl_finish(int type, int operation, void *sum, size_t count, int rank_count)
{
    for (size_t i = 0; operation == AVERAGE && i < count; i++) {
        switch (type) {
        case INT8:
            ((int8_t *)sum)[i] = (int8_t)(((int8_t *)sum)[i] / rank_count);
            break;
        case UINT8:
            ((uint8_t *)sum)[i] = (uint8_t)(((uint8_t *)sum)[i] / rank_count);
            break;
        case INT32:
            ((int32_t *)sum)[i] /= rank_count;
            break;
        case UINT32:
            ((uint32_t *)sum)[i] /= (uint32_t)rank_count;
            break;
        case INT64:
            ((int64_t *)sum)[i] /= rank_count;
            break;
        case UINT64:
            ((uint64_t *)sum)[i] /= (uint64_t)rank_count;
            break;
        case FLOAT:
            ((float *)sum)[i] /= (float)rank_count;
            break;
        case DOUBLE:
            ((double *)sum)[i] /= rank_count;
            break;
        case HALF:
            ((uint16_t *)sum)[i] = to_half(from_half(((uint16_t *)sum)[i]) / (float)rank_count);
            break;
        case BFLOAT16:
            ((uint16_t *)sum)[i] =
                to_bfloat16(from_bfloat16(((uint16_t *)sum)[i]) / (float)rank_count);
            break;
        default:
            return false;
        }
    }
    return true;
}
