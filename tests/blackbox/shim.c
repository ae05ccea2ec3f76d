/* Preloaded into PostgreSQL only: moves its clock and fills its disk, as a small control file says.
 *
 * Other programs that inherit LD_PRELOAD load this library too. Only processes named `postgres` attach the control file;
 * in all others every function below does exactly what the C library does.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct control {
    int64_t clock_offset_s;
    int64_t is_disk_full;
};

static const volatile struct control *control;

__attribute__((constructor)) static void attach(void) {
    char name[32] = {0};
    int fd = open("/proc/self/comm", O_RDONLY);
    if (fd < 0) return;
    ssize_t got = read(fd, name, sizeof name - 1);
    close(fd);
    const char *path = getenv("BLACKBOX_CONTROL");
    if (got <= 0 || path == NULL || strncmp(name, "postgres", 8) != 0) return;
    fd = open(path, O_RDONLY);
    if (fd < 0) return;
    void *found = mmap(NULL, sizeof(struct control), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (found != MAP_FAILED) control = found;
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (real == NULL) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

int clock_gettime(clockid_t clock, struct timespec *at) {
    REAL(clock_gettime);
    int result = real(clock, at);
    int is_wall_clock = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    if (result == 0 && control != NULL && is_wall_clock) at->tv_sec += control->clock_offset_s;
    return result;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    REAL(gettimeofday);
    int result = real(at, zone);
    if (result == 0 && control != NULL) at->tv_sec += control->clock_offset_s;
    return result;
}

time_t time(time_t *at) {
    REAL(time);
    time_t now = real(NULL);
    if (control != NULL) now += control->clock_offset_s;
    if (at != NULL) *at = now;
    return now;
}

/* A full disk refuses what makes a file longer. Logs (standard error) and shared memory are elsewhere. */
static int has_no_space(int fd, off_t end) {
    if (control == NULL || !control->is_disk_full || fd <= 2) return 0;
    int saved = errno, is_full = 0;
    struct stat file;
    if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && end > file.st_size) {
        char link[64], path[256];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t got = readlink(link, path, sizeof path - 1);
        path[got > 0 ? got : 0] = 0;
        is_full = strncmp(path, "/dev/shm/", 9) != 0;
    }
    errno = saved;
    return is_full;
}

static off_t length_of(const struct iovec *parts, int count) {
    off_t total = 0;
    for (int i = 0; i < count; i++) total += parts[i].iov_len;
    return total;
}

static off_t position_of(int fd) {
    int saved = errno;
    off_t at = lseek(fd, 0, SEEK_CUR);
    errno = saved;
    return at < 0 ? 0 : at;
}

#define REFUSE(fd, end) \
    if (has_no_space(fd, end)) { \
        errno = ENOSPC; \
        return -1; \
    }

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    if (control != NULL && control->is_disk_full) REFUSE(fd, position_of(fd) + (off_t)size);
    return real(fd, data, size);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    if (control != NULL && control->is_disk_full) REFUSE(fd, position_of(fd) + length_of(parts, count));
    return real(fd, parts, count);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL(pwrite);
    REFUSE(fd, at + (off_t)size);
    return real(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    REAL(pwrite64);
    REFUSE(fd, at + (off_t)size);
    return real(fd, data, size, at);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    REAL(pwritev);
    REFUSE(fd, at + length_of(parts, count));
    return real(fd, parts, count, at);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) {
    REAL(pwritev64);
    REFUSE(fd, at + length_of(parts, count));
    return real(fd, parts, count, at);
}

int fallocate(int fd, int mode, off_t at, off_t size) {
    REAL(fallocate);
    REFUSE(fd, at + size);
    return real(fd, mode, at, size);
}

int fallocate64(int fd, int mode, off64_t at, off64_t size) {
    REAL(fallocate64);
    REFUSE(fd, at + size);
    return real(fd, mode, at, size);
}

/* These two return the error instead of setting errno. */
int posix_fallocate(int fd, off_t at, off_t size) {
    REAL(posix_fallocate);
    return has_no_space(fd, at + size) ? ENOSPC : real(fd, at, size);
}

int posix_fallocate64(int fd, off64_t at, off64_t size) {
    REAL(posix_fallocate64);
    return has_no_space(fd, at + size) ? ENOSPC : real(fd, at, size);
}
