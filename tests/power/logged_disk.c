// SPDX-License-Identifier: BSD-3-Clause
/* A disk that remembers what was asked of it: logged_disk LOG BYTES MOUNTPOINT [FUSE options]
 *
 * MOUNTPOINT/disk is a file of BYTES zeros, for a loop device. Each write to it and each flush is
 * appended to LOG in the order in which it came. MOUNTPOINT/mark takes 8-byte numbers, which are
 * appended in the same order: what a program writes there after a call has returned comes after
 * all that the call has made durable. Requests come one at a time (-s, which is added).
 *
 * A record of LOG: uint64_t kind, place, bytes, little-endian, and then `bytes` bytes. */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { kind_write = 1, kind_flush = 2, kind_mark = 3 };

static FILE* log_file;
static char* contents;
static uint64_t contents_bytes;

static int is_disk(const char* path) {
  return strcmp(path, "/disk") == 0;
}
static int is_mark(const char* path) {
  return strcmp(path, "/mark") == 0;
}

static int append(uint64_t kind, uint64_t place, const char* bytes, uint64_t count) {
  const uint64_t head[3] = {kind, place, count};
  const int written = fwrite(head, sizeof head, 1, log_file) == 1 &&
                      (count == 0 || fwrite(bytes, count, 1, log_file) == 1) &&
                      fflush(log_file) == 0;
  return written ? 0 : -EIO;
}

static int get_attributes(const char* path, struct stat* about, struct fuse_file_info* file) {
  (void)file;
  memset(about, 0, sizeof *about);
  const int is_root = strcmp(path, "/") == 0;
  if (!is_root && !is_disk(path) && !is_mark(path)) return -ENOENT;
  about->st_mode = is_root ? S_IFDIR | 0700 : S_IFREG | 0600;
  about->st_nlink = 1;
  about->st_size = is_disk(path) ? (off_t)contents_bytes : 0;
  return 0;
}

static int open_file(const char* path, struct fuse_file_info* file) {
  if (!is_disk(path) && !is_mark(path)) return -ENOENT;
  file->direct_io = 1; /* the kernel keeps nothing back */
  return 0;
}

static int read_file(const char* path, char* to, size_t count, off_t from,
                     struct fuse_file_info* file) {
  (void)file;
  if (!is_disk(path) || (uint64_t)from >= contents_bytes) return 0;
  if (count > contents_bytes - (uint64_t)from) count = contents_bytes - (uint64_t)from;
  memcpy(to, contents + from, count);
  return (int)count;
}

static int write_file(const char* path, const char* bytes, size_t count, off_t to,
                      struct fuse_file_info* file) {
  (void)file;
  int failed = 0;
  if (is_mark(path)) {
    failed = append(kind_mark, 0, bytes, count);
  } else if ((uint64_t)to + count > contents_bytes) {
    failed = -ENOSPC;
  } else {
    memcpy(contents + to, bytes, count);
    failed = append(kind_write, (uint64_t)to, bytes, count);
  }
  return failed != 0 ? failed : (int)count;
}

static int flush_disk(const char* path, int only_data, struct fuse_file_info* file) {
  (void)only_data;
  (void)file;
  return is_disk(path) ? append(kind_flush, 0, NULL, 0) : 0;
}

static const struct fuse_operations operations = {.getattr = get_attributes,
                                                  .open = open_file,
                                                  .read = read_file,
                                                  .write = write_file,
                                                  .fsync = flush_disk};

int main(int argc, char** argv) {
  if (argc < 4) {
    fputs("logged_disk LOG BYTES MOUNTPOINT [FUSE options]\n", stderr);
    return 2;
  }
  contents_bytes = strtoull(argv[2], NULL, 10);
  contents = mmap(NULL, contents_bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  log_file = fopen(argv[1], "wx");
  if (contents == MAP_FAILED || log_file == NULL) {
    perror("logged_disk");
    return 1;
  }
  char single[] = "-s";
  char* words[64] = {argv[0], single};
  int count = 2;
  for (int i = 3; i < argc && count < 63; i++) words[count++] = argv[i];
  return fuse_main(count, words, &operations, NULL);
}
