/* file.c: the file of a trace: a JSON object whose array of events is complete after each write.
 *
 * Several runtimes may write to one file: each artifact of a process has its own, and processes may share a
 * name. So nobody keeps the file open; a write locks it, puts its lines in front of the closing brackets, and
 * lets go. The first line names the process that began the file. As long as that one lives, others add to the
 * file; later ones replace it. */
#include "core/numerals.h"
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };
static const char begins[] =
    "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"offload\",\"process\":\"";
static const char goes_on[] = "\"},\"traceEvents\":[\n";
static const char ends[] = "\n]}\n";

/* Those that come later begin with the comma. */
#define FIRST_EVENT                                                                                          \
  "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%ld,\"tid\":0,\"args\":{\"sort_index\":0}}"

static char setting_text[PATH_BYTES], path[PATH_BYTES];
static char folder[PATH_BYTES]; /* that a relative path is in: the current one at first, and for children */

/* "PID.START": a process's id, and when it started, because ids are used again. False when it is not there.
 */
static bool process_name(long id, char *name, size_t size) {
  enum {
    STATE = 3,
    STARTED = 22
  }; /* numbers of the fields, from 1; the second, in brackets, has any characters */
  char file[64], text[1024];
  snprintf(file, sizeof file, "/proc/%ld/stat", id);
  int descriptor = open(file, O_RDONLY | O_CLOEXEC);
  ssize_t length = descriptor < 0 ? -1 : read(descriptor, text, sizeof text - 1);
  if (descriptor >= 0)
    close(descriptor);
  text[length > 0 ? length : 0] = 0;
  char *at = strrchr(text, ')');
  for (int field = STATE - 1; at && field < STARTED; ++field) {
    at = strchr(at, ' ');
    at += at != NULL;
  }
  if (!at)
    return false;
  at[strcspn(at, " ")] = 0;
  snprintf(name, size, "%ld.%s", id, at);
  return true;
}

/* Puts the absolute path of the setting's file into `path`. */
static int expand(void) {
  struct mgpu_text text = {path, sizeof path, 0};
  path[0] = 0;
  if (setting_text[0] != '/') {
    if (!*folder && !getcwd(folder, sizeof folder))
      return errno;
    mgpu_text_add(&text, "%s/", folder);
  }
  for (const char *at = setting_text; *at; ++at) {
    if (at[0] == '%' && at[1] == 'p') {
      mgpu_text_add(&text, "%ld", (long)getpid());
      ++at;
    } else {
      mgpu_text_add(&text, "%c", *at);
    }
  }
  return text.used + 1 >= sizeof path ? ENAMETOOLONG : 0;
}

static int write_all(int file, const char *data, size_t size, off_t at) {
  while (size) {
    ssize_t written = pwrite(file, data, size, at);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return written < 0 ? errno : ENOSPC;
    data += written;
    size -= (size_t)written;
    at += written;
  }
  return 0;
}

/* The file, locked; -1 and errno. */
static int open_locked(int flags) {
  int file = open(path, O_RDWR | O_CLOEXEC | flags, 0666);
  struct statx status; /* fstat is a function of glibc 2.33 and later; see core/glibc.h */
  if (file < 0)
    return -1;
  int problem = statx(file, "", AT_EMPTY_PATH, STATX_TYPE, &status) ? errno
                : S_ISREG(status.stx_mode)                          ? 0
                                                                    : EINVAL;
  while (!problem && flock(file, LOCK_EX))
    problem = errno == EINTR ? 0 : errno;
  if (!problem)
    return file;
  close(file);
  errno = problem;
  return -1;
}

/* Unlocks by name: a child that is forked just now holds the file open too. */
static void close_locked(int file) {
  flock(file, LOCK_UN);
  close(file);
}

/* Whether a process that still lives has begun the file. */
static bool is_in_use(int file) {
  char head[sizeof begins + 64] = "", living[64];
  if (pread(file, head, sizeof head - 1, 0) <= 0 || strncmp(head, begins, sizeof begins - 1) != 0)
    return false;
  char *owner = head + sizeof begins - 1;
  owner[strcspn(owner, "\"")] = 0;
  return process_name(mgpu_strtol(owner, NULL, 10), living, sizeof living) && strcmp(owner, living) == 0;
}

static int begin(void) {
  char text[512], name[64];
  int problem = expand();
  if (problem)
    return problem;
  int file = open_locked(O_CREAT);
  if (file < 0)
    return errno;
  if (!is_in_use(file)) {
    if (!process_name((long)getpid(), name, sizeof name))
      snprintf(name, sizeof name, "%ld", (long)getpid());
    int length =
        snprintf(text, sizeof text, "%s%s%s" FIRST_EVENT "%s", begins, name, goes_on, (long)getpid(), ends);
    problem = ftruncate(file, 0) ? errno : write_all(file, text, (size_t)length, 0);
  }
  close_locked(file);
  return problem;
}

int mgpu_trace_file_begin(const char *setting) {
  if (strlen(setting) >= sizeof setting_text)
    return ENAMETOOLONG;
  strcpy(setting_text, setting);
  return begin();
}

int mgpu_trace_file_append(const char *lines, size_t size) {
  char tail[sizeof ends] = "", *whole = malloc(size + sizeof ends);
  int file = whole ? open_locked(0) : -1, problem = whole ? errno : ENOMEM;
  if (file >= 0) {
    off_t end = lseek(file, 0, SEEK_END), at = end - (off_t)(sizeof ends - 1);
    memcpy(whole, lines, size);
    memcpy(whole + size, ends, sizeof ends);
    if (at < 0 || pread(file, tail, sizeof ends - 1, at) < 0 || strcmp(tail, ends) != 0)
      problem = EBADMSG; /* somebody else has written to it */
    else
      problem = write_all(file, whole, size + sizeof ends - 1, at);
    if (problem && problem != EBADMSG && !ftruncate(file, at)) /* as before: that had room */
      write_all(file, ends, sizeof ends - 1, at);
    close_locked(file);
  }
  free(whole);
  return problem;
}

int mgpu_trace_file_fork(void) { return strstr(setting_text, "%p") ? begin() : 0; }

const char *mgpu_trace_file_words(int code) {
  return code == EINVAL    ? "it is no regular file"
         : code == EBADMSG ? "something else has changed it"
                           : strerror(code);
}

const char *mgpu_trace_file_path(void) { return path[0] ? path : setting_text; }
