#include "crc32.h"

/* The table is linear: an entry is the sum of those for its bits. So eight numbers give all 256, at compile time. */
#define BIT(n, bit, crc) (((n) >> (bit)) & 1 ? UINT32_C(crc) : 0)
#define ENTRY(n)                                                                                                               \
    (BIT(n, 0, 0x77073096) ^ BIT(n, 1, 0xee0e612c) ^ BIT(n, 2, 0x076dc419) ^ BIT(n, 3, 0x0edb8832) ^                           \
     BIT(n, 4, 0x1db71064) ^ BIT(n, 5, 0x3b6e20c8) ^ BIT(n, 6, 0x76dc4190) ^ BIT(n, 7, 0xedb88320))
#define ENTRIES_4(n) ENTRY(n), ENTRY((n) + 1), ENTRY((n) + 2), ENTRY((n) + 3)
#define ENTRIES_16(n) ENTRIES_4(n), ENTRIES_4((n) + 4), ENTRIES_4((n) + 8), ENTRIES_4((n) + 12)
#define ENTRIES_64(n) ENTRIES_16(n), ENTRIES_16((n) + 16), ENTRIES_16((n) + 32), ENTRIES_16((n) + 48)

static const uint32_t table[256] = { ENTRIES_64(0), ENTRIES_64(64), ENTRIES_64(128), ENTRIES_64(192) };

uint32_t
hw_crc32(uint32_t crc, const void *bytes, size_t length)
{
    const uint8_t *byte = bytes;
    crc = ~crc;
    while (length--) crc = table[(crc ^ *byte++) & 0xff] ^ (crc >> 8);
    return ~crc;
}
