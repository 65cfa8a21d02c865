/* Device logs written by hand, for tests of their reader. */
#ifndef FRAG_SUPPORT_DEVICE_LOG_BYTES_H
#define FRAG_SUPPORT_DEVICE_LOG_BYTES_H

#include <stddef.h>

#include "sim/device/device_log_format.h"

/* A log that ended in order, of records to which numbers are given here (unless number is
 * UINT32_MAX: that place stays empty). *bytes is how many there are; the caller frees them. */
unsigned char *frag_device_log_bytes(const frag_device_record *records, size_t count,
                                     size_t *bytes);

#endif
