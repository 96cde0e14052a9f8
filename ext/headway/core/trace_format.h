/* Numbers of the trace file's format, which docs/trace-format.md describes. Writer and reader share them. */
#ifndef HW_TRACE_FORMAT_H
#define HW_TRACE_FORMAT_H

#include <stdint.h>

/* "\x89HWT\r\n\x1a\n": a byte no text starts with, line ends that a transfer as text would change, the end of a text file. */
#define HW_TRACE_MAGIC UINT64_C(0x0a1a0a0d54574889)
#define HW_TRACE_MAGIC_LENGTH 8
#define HW_TRACE_VERSION 1
#define HW_TRACE_PREAMBLE_LENGTH (HW_TRACE_MAGIC_LENGTH + 4)

/* type, length, CRC-32: four bytes each */
#define HW_TRACE_BLOCK_HEAD_LENGTH 12
#define HW_TRACE_BLOCK_LONGEST (UINT32_C(1) << 22)

/* name, number */
#define HW_TRACE_BLOCKS(EACH)                                                                                                  \
    EACH(HEADER, 1)                                                                                                            \
    EACH(STRINGS, 2)                                                                                                           \
    EACH(THREADS, 3)                                                                                                           \
    EACH(FRAMES, 4)                                                                                                            \
    EACH(STACKS, 5)                                                                                                            \
    EACH(EVENTS, 6)                                                                                                            \
    EACH(DROPPED, 7)                                                                                                           \
    EACH(END, 8)                                                                                                               \
    EACH(QUOTA, 9)

enum hw_trace_block {
#define EACH(name, number) HW_TRACE_BLOCK_##name = number,
    HW_TRACE_BLOCKS(EACH)
#undef EACH
};

#define HW_TRACE_STRING_LONGEST 65535
#define HW_TRACE_NAME_LONGEST 255            /* a thread's name; its site may be HW_TRACE_STRING_LONGEST */
#define HW_TRACE_STACK_DEEPEST 1024
#define HW_TRACE_ID_HIGHEST ((UINT32_C(1) << 20) - 1) /* of strings, frames and stacks */
#define HW_TRACE_EVENTS_MOST 65536
#define HW_TRACE_TIME_HIGHEST_NS (UINT64_C(1) << 62)
#define HW_TRACE_CPUS_MOST 65536

/* An event's first byte: its kind in the low four bits (0: the kind is the next byte), then what follows and what doesn't. */
#define HW_TRACE_KIND_MASK 0x0f
#define HW_TRACE_SAME_THREAD 0x10 /* as the event before: no thread follows */
#define HW_TRACE_HAS_VALUE 0x20   /* else it is 0 */
#define HW_TRACE_HAS_DETAIL 0x40  /* else it is 0 */
#define HW_TRACE_RESERVED 0x80    /* never set */

#endif
