/* What threads are called: by their native threads, or as Ruby last said. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "names.h"
#include "test.h"

#include <pthread.h>
#include <string.h>

static void
check_name(bool main, int native_id, const char *told, const char *expected)
{
    struct hw_naming naming = { .number = 7, .native_id = native_id, .main = main };
    char name[sizeof(naming.told)];
    strcpy(naming.told, told);
    bool known = hw_name_of(&naming, name, sizeof(name));
    CHECK_EQUAL(strcmp(expected, "thread 7") != 0, known);
    CHECK(strcmp(expected, name) == 0, "%s, not %s", name, expected);
}

TEST(names)
{
    int here = hw_native_id();
    check_name(true, here, "", "main");
    check_name(true, 0, "boss", "boss");
    check_name(false, 0, "", "thread 7");
    check_name(false, 0, "worker", "worker");
    if (here == 0) return;
    pthread_setname_np(pthread_self(), "worker");
    check_name(false, here, "", "worker");
    check_name(false, here, "workers", "worker");
    check_name(true, here, "boss", "boss");
    pthread_setname_np(pthread_self(), "a quite long na");
    check_name(false, here, "a quite long name", "a quite long name");
    check_name(false, here, "another name", "a quite long na");
    pthread_setname_np(pthread_self(), "worker.rb:12");
    check_name(false, here, "/app/worker.rb:12", "/app/worker.rb:12");
    check_name(false, here, "/app/worker.rb:123", "worker.rb:12");
    pthread_setname_np(pthread_self(), "connection_po*");
    check_name(false, here, "/app/connection_pool.rb:12", "/app/connection_pool.rb:12");
    check_name(false, here, "/app/connections.rb:12", "connection_po*");
    pthread_setname_np(pthread_self(), "w\303\266rker-\346\227\245\346\234\254\350"); /* cut after the first of three bytes */
    check_name(false, here, "", "w\303\266rker-\346\227\245\346\234\254");
    pthread_setname_np(pthread_self(), "fifteen bytes \351"); /* of another encoding */
    check_name(false, here, "", "fifteen bytes ");
    pthread_setname_np(pthread_self(), "w\303\266rker-a-\346\227\245");
    check_name(false, here, "", "w\303\266rker-a-\346\227\245");
}

TESTS({ "names", names })
