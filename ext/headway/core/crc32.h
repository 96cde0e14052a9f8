/* CRC-32 as of IEEE 802.3, zlib and PNG. */
#ifndef HW_CRC32_H
#define HW_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* crc: of the bytes before these, 0 when there are none. */
uint32_t hw_crc32(uint32_t crc, const void *bytes, size_t length);

#endif
