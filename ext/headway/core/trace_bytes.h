/* Takes numbers and texts off bytes nobody vouches for: what would reach beyond the end marks the bytes as bad and yields 0. And puts
 * numbers where there is room for them. */
#ifndef HW_TRACE_BYTES_H
#define HW_TRACE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_bytes {
    const uint8_t *at, *end;
    bool bad;
};

static inline uint32_t
hw_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint8_t
hw_take_byte(struct hw_bytes *bytes)
{
    if (bytes->at < bytes->end) return *bytes->at++;
    bytes->bad = true;
    return 0;
}

static inline uint64_t
hw_take_varint(struct hw_bytes *bytes)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = hw_take_byte(bytes);
        if (shift == 63 && byte > 1) break; /* more than 64 bits */
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    bytes->bad = true;
    return 0;
}

static inline uint32_t
hw_take_u32(struct hw_bytes *bytes)
{
    uint64_t value = hw_take_varint(bytes);
    if (value > UINT32_MAX) bytes->bad = true;
    return (uint32_t)value;
}

/* The text's length; *text points into the bytes. */
static inline uint32_t
hw_take_text(struct hw_bytes *bytes, uint32_t longest, const char **text)
{
    uint64_t length = hw_take_varint(bytes);
    *text = (const char *)bytes->at;
    if (length > longest || length > (uint64_t)(bytes->end - bytes->at)) {
        bytes->bad = true;
        return 0;
    }
    bytes->at += length;
    return (uint32_t)length;
}

static inline uint8_t *
hw_put_varint(uint8_t *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

#endif
