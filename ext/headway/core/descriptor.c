#include "descriptor.h"

#include <unistd.h>

struct hw_descriptor
hw_descriptor_of(int fd)
{
    struct stat info;
    if (fstat(fd, &info) != 0) info = (struct stat){ .st_ino = 0 };
    return (struct hw_descriptor){ .fd = fd, .device = info.st_dev, .inode = info.st_ino };
}

bool
hw_descriptor_whole(const struct hw_descriptor *descriptor)
{
    struct stat info;
    return descriptor->fd >= 0 && fstat(descriptor->fd, &info) == 0 && info.st_dev == descriptor->device &&
           info.st_ino == descriptor->inode;
}

void
hw_descriptor_close(struct hw_descriptor *descriptor)
{
    if (hw_descriptor_whole(descriptor)) close(descriptor->fd);
    descriptor->fd = -1;
}
