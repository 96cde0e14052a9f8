/* The control socket: it opens, answers, drops who is slow, closes, and leaves no file behind. */
#include "control_client.h"
#include "controlled.h"

static int
connected(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strcpy(address.sun_path, control.path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? fd : -1;
}

static bool
changed(void)
{
    pthread_mutex_lock(&control.lock);
    bool changed = control.settings_changed;
    control.settings_changed = false;
    pthread_mutex_unlock(&control.lock);
    return changed;
}

TEST(opens_answers_and_closes)
{
    set_up();
    for (int round = 0; round < 10; round++) {
        CHECK(hw_control_open(&control) == NULL);
        CHECK(hw_control_open(&control) == NULL, "twice does nothing");
        CHECK_EQUAL(1, (uint64_t)files());
        CHECK(says(J("{'ping':true}\n"), J("'command':'a ~'test~''")));
        CHECK(says(J("{'get':'settings'}\n"), J("{'settings':{'policy':'observe','preempt':'poll','quantum_ms':100}}")));
        CHECK(says(J("{'get':'stats'}\n"), J("'threads':[]")));
        CHECK(says(J("{'get':'stats'}\n"), J("'wait_histogram':[]")));
        CHECK(says(J("{'set':{'quantum_ms':0.5}}\n"), "quantum_ms is 0.5: give milliseconds"));
        CHECK(!changed());
        CHECK(says(J("{'set':{'quantum_ms':2.5,'policy':'quantum'}}\n"), J("'policy':'quantum','preempt':'poll','quantum_ms':2.5}")));
        CHECK(changed());
        CHECK(says(J("{'set':{'quantum_ms':100,'policy':'observe'}}\n"), J("'quantum_ms':100}")));
        CHECK(says("x\n", J("{'error':'this is no request")));
        hw_control_close(&control);
        hw_control_close(&control);
        CHECK_EQUAL(0, (uint64_t)files());
        changed();
    }
    tear_down();
}

/* Seconds, of ten to a second here, until the server hangs up on a client that sends this now and then, or nothing. */
static double
hung_up_after(const char *first, const char *then)
{
    uint64_t begun = hw_now_ns();
    int fd = connected();
    bool over = send(fd, first, strlen(first), MSG_NOSIGNAL) < 0;
    while (!over && hw_now_ns() < begun + 20 * HW_NS_PER_S) {
        char bytes[16];
        usleep(5000);
        if (then) over = send(fd, then, strlen(then), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EPIPE;
        else over = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) == 0;
    }
    close(fd);
    return over ? (double)(hw_now_ns() - begun) / HW_CLIENT_SECOND_NS : 0;
}

TEST(slow_clients_are_dropped)
{
    set_up();
    CHECK(hw_control_open(&control) == NULL);
    CHECK(hung_up_after("", NULL) >= 9.9, "one that says nothing");
    CHECK(hung_up_after("{", NULL) >= 1.9, "half a request");
    CHECK(hung_up_after("{", " ") >= 1.9, "one that drips");
    CHECK(hung_up_after("{", J("{'get':'stats'}\n{'get':'stats'}\n{'get':'stats'}\n{'get':'stats'}\n")) >= 1.9, "one that doesn't read");
    CHECK(says(J("{'ping':true}\n"), "ping"));
    tear_down();
}

TEST(stale_files_are_swept)
{
    set_up();
    CHECK(hw_control_open(&control) == NULL);
    CHECK(says(J("{'ping':true}\n"), "ping"), "it has swept");
    pid_t child = fork();
    if (child == 0) {
        alarm(TEST_CHILD_LIMIT_S);
        hw_control_after_fork_child(&control);
        _exit(hw_socket_open(&control) == NULL ? 0 : 1); /* its file stays */
    }
    waitpid(child, NULL, 0);
    CHECK_EQUAL(2, (uint64_t)files());
    hw_control_close(&control);
    CHECK_EQUAL(1, (uint64_t)files());
    CHECK(hw_control_open(&control) == NULL);
    CHECK(says(J("{'ping':true}\n"), "ping"));
    CHECK_EQUAL(1, (uint64_t)files());
    tear_down();
}

TESTS({ "slow", slow_clients_are_dropped }, { "opens", opens_answers_and_closes }, { "stale", stale_files_are_swept })
