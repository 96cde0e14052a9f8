/* A descriptor of ours: some programs close all there are, and the number may be somebody else's then. */
#ifndef HW_DESCRIPTOR_H
#define HW_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/stat.h>

struct hw_descriptor {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

struct hw_descriptor hw_descriptor_of(int fd);
bool hw_descriptor_whole(const struct hw_descriptor *descriptor); /* there, and still ours */
void hw_descriptor_close(struct hw_descriptor *descriptor); /* if it is */

#endif
