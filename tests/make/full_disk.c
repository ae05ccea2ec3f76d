/* A disk that is full while the file named by FULL_DISK_WHEN exists.
 *
 * Preloaded into PostgreSQL. As on a real full disk, whatever would make a file grow fails with ENOSPC, and blocks that
 * a file has already can be overwritten. Files on other devices than the switch are left alone: /dev/shm is not full.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int is_refused(int fd, off_t end) {
  const char *path = getenv("FULL_DISK_WHEN");
  struct stat when, file;
  if (path == NULL || stat(path, &when) || fstat(fd, &file)) return 0;
  return S_ISREG(file.st_mode) && file.st_dev == when.st_dev && end > file.st_size;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) {
  ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite64");
  if (!is_refused(fd, at + (off_t)size)) return real(fd, data, size, at);
  errno = ENOSPC;
  return -1;
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t at) {
  ssize_t (*real)(int, const struct iovec *, int, off_t) = dlsym(RTLD_NEXT, "pwritev64");
  off_t end = at;
  for (int i = 0; i < count; i++) end += (off_t)parts[i].iov_len;
  if (!is_refused(fd, end)) return real(fd, parts, count, at);
  errno = ENOSPC;
  return -1;
}

int posix_fallocate64(int fd, off_t at, off_t size) {
  int (*real)(int, off_t, off_t) = dlsym(RTLD_NEXT, "posix_fallocate64");
  return is_refused(fd, at + size) ? ENOSPC : real(fd, at, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) { return pwritev64(fd, parts, count, at); }

int posix_fallocate(int fd, off_t at, off_t size) { return posix_fallocate64(fd, at, size); }
