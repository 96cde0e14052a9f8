/* Built and run by the Makefile to see what this machine's compiler and tools can do. */
#include <pthread.h>
#ifdef HW_TEST_HDR
#include <hdr/hdr_histogram.h>
#endif

static void *
run(void *arg)
{
    return arg;
}

int
main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL) != 0 || pthread_join(thread, NULL) != 0) return 1;
#ifdef HW_TEST_HDR
    struct hdr_histogram *hdr;
    if (hdr_init(1, 3600000000000, 3, &hdr) != 0) return 1;
    hdr_close(hdr);
#endif
    return 0;
}
