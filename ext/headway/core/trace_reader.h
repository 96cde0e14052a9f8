/* Reads a trace file block by block: sequentially, with read calls and one buffer, so that a file that changes meanwhile can
 * only look damaged. Every length is bounded by what is left of the file and by the limits of trace_format.h. The file may
 * still be being written: what is complete when it is opened is read. */
#ifndef HW_TRACE_READER_H
#define HW_TRACE_READER_H

#include "trace_writer.h"

#define HW_TRACE_WHAT_LONGEST 160

/* What is wrong with a file, and where. what[0] == 0: nothing. */
struct hw_trace_damage {
    uint64_t offset;
    char what[HW_TRACE_WHAT_LONGEST];
};

struct hw_trace_block_read {
    uint32_t type; /* enum hw_trace_block, or one of a later Headway */
    uint32_t length;
    const uint8_t *payload; /* until the next call */
    uint64_t offset;        /* of the block's head */
};

struct hw_trace_reader {
    int fd;
    uint64_t size;   /* of the file when it was opened */
    uint64_t offset; /* of the next block */
    bool ended;      /* nothing follows: the end block was seen, or there is damage */
    struct hw_trace_damage damage;
    struct hw_trace_header header;

    uint8_t *buffer;
    size_t capacity, filled;
    uint64_t buffer_offset; /* of its first byte in the file */
};

/* Opens and reads the header. Of the file its first `longest` bytes count, so that two passes over one that grows see the
 * same. False: reader->damage says why nothing can be read, and the reader is closed already. */
bool hw_trace_open(struct hw_trace_reader *reader, const char *path, uint64_t longest);
void hw_trace_close(struct hw_trace_reader *reader);

/* The next whole and sound block. False at the end, or at the damage, which is then in reader->damage. */
bool hw_trace_next(struct hw_trace_reader *reader, struct hw_trace_block_read *block);

/* Ends the reading at a block whose checksum holds but whose contents don't. */
void hw_trace_condemn(struct hw_trace_reader *reader, const struct hw_trace_block_read *block, const char *what);

#endif
