/* Traces that are damaged, cut off or no traces at all do no harm. */
#include "trace_bytes.h"
#include "crc32.h"
#include "reading.h"

TEST(a_file_cut_anywhere_is_read_up_to_there)
{
    struct hw_buffer buffer = small_trace();
    struct hw_trace_damage damage;
    for (size_t length = 0; length < buffer.length; length++) {
        read_anything(buffer.bytes, length, &damage);
        CHECK(damage.what[0], "%zu bytes of %zu seem whole", length, buffer.length);
    }
    read_anything(buffer.bytes, buffer.length, &damage);
    CHECK(!damage.what[0]);
    free(buffer.bytes);
}

TEST(every_flipped_bit_is_noticed)
{
    struct hw_buffer buffer = small_trace();
    struct hw_trace_damage damage;
    size_t stride = test_effort(1000) < 500 ? 11 : 1;
    for (size_t bit = 0; bit < buffer.length * 8; bit += stride) {
        buffer.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        read_anything(buffer.bytes, buffer.length, &damage);
        CHECK(damage.what[0], "bit %zu", bit);
        CHECK(damage.offset <= bit / 8);
        buffer.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(buffer.bytes);
}

TEST(damage_is_named_with_its_offset)
{
    struct hw_buffer buffer = small_trace();
    struct hw_trace_damage damage;
    size_t end_block = buffer.length - HW_TRACE_BLOCK_HEAD_LENGTH;
    read_anything(buffer.bytes, end_block, &damage);
    CHECK_EQUAL(end_block, damage.offset);
    CHECK(says(&damage, "no end block"), "%s", damage.what);

    read_anything(buffer.bytes, end_block - 1, &damage);
    CHECK(damage.offset < end_block && says(&damage, "cut short"), "%s", damage.what);

    buffer.bytes[end_block - 1] ^= 1;
    read_anything(buffer.bytes, buffer.length, &damage);
    CHECK(damage.offset < end_block && says(&damage, "checksum"), "%s", damage.what);
    free(buffer.bytes);
}

TEST(what_is_no_trace_is_refused)
{
    struct hw_trace_damage damage;
    struct hw_buffer buffer = small_trace();
    read_anything("", 0, &damage);
    CHECK(says(&damage, "empty"));
    read_anything("{\"traceEvents\":[]}", 18, &damage);
    CHECK(says(&damage, "no Headway trace"));
    read_anything(buffer.bytes, 5, &damage);
    CHECK(says(&damage, "cut short"));
    buffer.bytes[HW_TRACE_MAGIC_LENGTH] = HW_TRACE_VERSION + 1;
    read_anything(buffer.bytes, buffer.length, &damage);
    CHECK(says(&damage, "version 2"));

    struct hw_trace_reader reader;
    CHECK(!hw_trace_open(&reader, "/nonexistent/trace", UINT64_MAX) && says(&reader.damage, "No such file"));
    CHECK(!hw_trace_open(&reader, "/dev/null", UINT64_MAX) && says(&reader.damage, "no regular file"));
    CHECK(!hw_trace_open(&reader, "/", UINT64_MAX) && says(&reader.damage, "no regular file"));
    free(buffer.bytes);
}

/* A block of any type and contents, with the right checksum. */
static void
append_block(struct hw_buffer *buffer, uint32_t type, const uint8_t *payload, uint32_t length)
{
    uint8_t head[HW_TRACE_BLOCK_HEAD_LENGTH];
    uint32_t words[2] = { type, length };
    for (int i = 0; i < 8; i++) head[i] = (uint8_t)(words[i / 4] >> (8 * (i % 4)));
    uint32_t crc = hw_crc32(hw_crc32(0, head, 8), payload, length);
    for (int i = 0; i < 4; i++) head[8 + i] = (uint8_t)(crc >> (8 * i));
    size_t needed = buffer->length + sizeof(head) + length;
    if (needed > buffer->capacity) {
        buffer->bytes = realloc(buffer->bytes, needed);
        buffer->capacity = needed;
    }
    memcpy(buffer->bytes + buffer->length, head, sizeof(head));
    memcpy(buffer->bytes + buffer->length + sizeof(head), payload, length);
    buffer->length = needed;
}

TEST(a_header_that_no_machine_writes_is_damage)
{
    static const struct { uint64_t clock_ns, quantum_ns; uint32_t cpus; const char *says; } cases[] = {
        { HW_TRACE_TIME_HIGHEST_NS, HW_TRACE_TIME_HIGHEST_NS, HW_TRACE_CPUS_MOST, "" },
        { HW_TRACE_TIME_HIGHEST_NS + 1, 1, 1, "the header's clock" }, { 1, UINT64_MAX, 1, "the header's quantum" },
        { 1, 1, UINT32_MAX, "the header has 4294967295 CPUs" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct hw_buffer buffer = { 0 };
        struct hw_trace_damage damage;
        struct hw_trace_header header = trace_header;
        header.clock_ns = cases[i].clock_ns;
        header.quantum_ns = cases[i].quantum_ns;
        header.cpus = cases[i].cpus;
        CHECK(hw_write_header(&buffer, &header));
        CHECK(hw_write_end(&buffer));
        read_anything(buffer.bytes, buffer.length, &damage);
        CHECK(cases[i].says[0] ? says(&damage, cases[i].says) : !damage.what[0], "%s", damage.what);
        free(buffer.bytes);
    }
}

TEST(unknown_blocks_are_skipped)
{
    struct hw_buffer buffer = { 0 };
    struct hw_trace_damage damage;
    CHECK(hw_write_header(&buffer, &trace_header));
    append_block(&buffer, 77, (const uint8_t *)"whatever", 8);
    CHECK(hw_write_end(&buffer));
    read_anything(buffer.bytes, buffer.length, &damage);
    CHECK(!damage.what[0], "%s", damage.what);
    free(buffer.bytes);
}

TEST(nonsense_with_right_checksums_does_no_harm)
{
    uint8_t payload[200];
    struct hw_trace_damage damage;
    for (unsigned round = 0; round < test_effort(1500); round++) {
        struct hw_buffer buffer = { 0 };
        CHECK(hw_write_header(&buffer, &trace_header));
        for (uint64_t blocks = test_random(6); blocks; blocks--) {
            uint32_t length = (uint32_t)test_random(sizeof(payload));
            for (uint32_t i = 0; i < length; i++) payload[i] = (uint8_t)test_random(test_random(2) ? 256 : 16);
            append_block(&buffer, (uint32_t)test_random(10), payload, length);
        }
        read_anything(buffer.bytes, buffer.length, &damage);
        free(buffer.bytes);
    }
}

/* Blocks of a sound trace with some bytes changed and their checksums put right. */
TEST(changed_blocks_with_right_checksums_do_no_harm)
{
    struct hw_buffer whole = small_trace();
    struct hw_trace_damage damage;
    for (unsigned round = 0; round < test_effort(1500); round++) {
        struct hw_buffer buffer = { 0 };
        append_block(&buffer, 0, (const uint8_t *)"", 0);
        buffer.length = HW_TRACE_PREAMBLE_LENGTH;
        memcpy(buffer.bytes, whole.bytes, HW_TRACE_PREAMBLE_LENGTH);
        for (size_t at = HW_TRACE_PREAMBLE_LENGTH; at < whole.length;) {
            uint8_t payload[1024];
            uint32_t length = hw_u32(whole.bytes + at + 4);
            memcpy(payload, whole.bytes + at + HW_TRACE_BLOCK_HEAD_LENGTH, length);
            if (length && test_random(4) == 0) payload[test_random(length)] = (uint8_t)test_random(256);
            append_block(&buffer, hw_u32(whole.bytes + at), payload, length);
            at += HW_TRACE_BLOCK_HEAD_LENGTH + length;
        }
        read_anything(buffer.bytes, buffer.length, &damage);
        free(buffer.bytes);
    }
    free(whole.bytes);
}

TEST(random_bytes_do_no_harm)
{
    uint8_t bytes[300];
    struct hw_buffer whole = small_trace();
    struct hw_trace_damage damage;
    for (unsigned round = 0; round < test_effort(1000); round++) {
        size_t kept = test_random(3) ? test_random(HW_TRACE_PREAMBLE_LENGTH + 100) : 0, length = 1 + test_random(sizeof(bytes));
        for (size_t i = 0; i < length; i++) bytes[i] = i < kept ? whole.bytes[i] : (uint8_t)test_random(256);
        read_anything(bytes, length, &damage);
    }
    free(whole.bytes);
}

TESTS({ "a_file_cut_anywhere_is_read_up_to_there", a_file_cut_anywhere_is_read_up_to_there },
      { "every_flipped_bit_is_noticed", every_flipped_bit_is_noticed },
      { "damage_is_named_with_its_offset", damage_is_named_with_its_offset },
      { "what_is_no_trace_is_refused", what_is_no_trace_is_refused },
      { "a_header_that_no_machine_writes_is_damage", a_header_that_no_machine_writes_is_damage },
      { "unknown_blocks_are_skipped", unknown_blocks_are_skipped },
      { "nonsense_with_right_checksums_does_no_harm", nonsense_with_right_checksums_does_no_harm },
      { "changed_blocks_with_right_checksums_do_no_harm", changed_blocks_with_right_checksums_do_no_harm },
      { "random_bytes_do_no_harm", random_bytes_do_no_harm })
