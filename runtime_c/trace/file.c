/* file.c: the file of a trace: a JSON object whose array of events is complete after each write.
 *
 * Several runtimes may write to one file: each artifact of a process has its own, and processes may share a
 * name. So nobody keeps the file open; a write locks it, puts its lines in front of the closing brackets, and
 * lets go. The first line names the process that began the file and those that have joined it. As long as one
 * of them lives, others add to the file; later ones replace it. */
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

enum { PATH_BYTES = 4096, NAME_BYTES = 40, OTHERS_BYTES = 1000, HEAD_BYTES = 1200 };
static const char begins[] =
    "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"offload\",\"process\":\"";
static const char others[] = "\",\"others\":\""; /* OTHERS_BYTES follow: names, and blanks */
static const char goes_on[] = "\"},\"traceEvents\":[\n";
static const char ends[] = "\n]}\n";

/* Those that come later begin with the comma. */
#define FIRST_EVENT                                                                                          \
  "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%ld,\"tid\":0,\"args\":{\"sort_index\":0}}"

static char setting_text[PATH_BYTES], path[PATH_BYTES];
static char folder[PATH_BYTES]; /* that a relative path is in: the current one at first, and for children */

static bool joined; /* whether the file has this process's name */

/* What /proc/ID/stat has from the field of that number on, counted from 1; NULL when the process is not
 * there. The second, in brackets, has any characters. */
static char *stat_from(long id, int number, char *text, size_t size) {
  char file[64];
  snprintf(file, sizeof file, "/proc/%ld/stat", id);
  int descriptor = open(file, O_RDONLY | O_CLOEXEC);
  ssize_t length = descriptor < 0 ? -1 : read(descriptor, text, size - 1);
  if (descriptor >= 0)
    close(descriptor);
  text[length > 0 ? length : 0] = 0;
  char *at = strrchr(text, ')');
  for (int field = 2; at && field < number; ++field) {
    at = strchr(at, ' ');
    at += at != NULL;
  }
  return at;
}

/* "PID.START": a process's id, and when it started, because ids are used again. False when it is not there.
 */
static bool process_name(long id, char name[NAME_BYTES]) {
  enum { STARTED = 22 };
  char text[1024], *at = stat_from(id, STARTED, text, sizeof text);
  if (!at)
    return false;
  at[strcspn(at, " ")] = 0;
  snprintf(name, NAME_BYTES, "%ld.%s", id, at);
  return true;
}

static void own_name(char name[NAME_BYTES]) {
  if (!process_name((long)getpid(), name))
    snprintf(name, NAME_BYTES, "%ld", (long)getpid());
}

bool mgpu_trace_file_forked(void) {
  enum { FLAGS = 9, FORKED_AND_NO_EXEC = 0x40 }; /* Linux's PF_FORKNOEXEC */
  char text[1024];
  const char *at = stat_from((long)getpid(), FLAGS, text, sizeof text);
  return at && (mgpu_strtoull(at, NULL, 10) & FORKED_AND_NO_EXEC);
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

/* The begin of a file. Its texts are ended in place. */
struct head {
  char text[HEAD_BYTES];
  const char *owner; /* who began it */
  char *list;        /* of the others; NULL in a file of an older version */
};

/* False when that is no trace. */
static bool read_head(int file, struct head *head) {
  ssize_t length = pread(file, head->text, sizeof head->text - 1, 0);
  head->text[length > 0 ? length : 0] = 0;
  if (strncmp(head->text, begins, sizeof begins - 1) != 0)
    return false;
  head->owner = head->text + sizeof begins - 1;
  char *end = strchr(head->owner, '"');
  if (!end)
    return false;
  const size_t length_of_others = sizeof others - 1;
  head->list = strncmp(end, others, length_of_others) == 0 ? end + length_of_others : NULL;
  if (head->list && (strlen(head->list) <= OTHERS_BYTES || head->list[OTHERS_BYTES] != '"'))
    head->list = NULL;
  if (head->list)
    head->list[OTHERS_BYTES] = 0;
  *end = 0;
  return true;
}

static bool lives(const char *name) {
  char living[NAME_BYTES];
  return process_name(mgpu_strtol(name, NULL, 10), living) && strcmp(name, living) == 0;
}

/* Whether a process that still lives adds to the file. This one joins those then, or `always`. *problem is an
 * errno, or 0. */
static bool join(int file, bool always, int *problem) {
  char own[NAME_BYTES], living[OTHERS_BYTES + 1], *rest = NULL;
  struct mgpu_text names = {living, sizeof living, 0};
  struct head head;
  *problem = 0;
  if (!read_head(file, &head))
    return false;
  own_name(own);
  bool in_use = lives(head.owner);
  for (char *name = head.list ? strtok_r(head.list, " ", &rest) : NULL; name;
       name = strtok_r(NULL, " ", &rest))
    if (lives(name)) {
      in_use = true;
      if (strcmp(name, own) != 0)
        mgpu_text_add(&names, "%s ", name);
    }
  /* Where there is no room, those that are there keep the file. */
  if (!(in_use || always) || !head.list || strcmp(head.owner, own) == 0 ||
      names.used + strlen(own) > OTHERS_BYTES)
    return in_use;
  mgpu_text_add(&names, "%s", own);
  memset(living + names.used, ' ', OTHERS_BYTES - names.used);
  *problem = write_all(file, living, OTHERS_BYTES, (off_t)(head.list - head.text));
  return in_use;
}

static int begin(void) {
  char text[HEAD_BYTES + 256], name[NAME_BYTES];
  int problem = expand();
  if (problem)
    return problem;
  int file = open_locked(O_CREAT);
  if (file < 0)
    return errno;
  if (!join(file, false, &problem)) {
    own_name(name);
    int length = snprintf(text, sizeof text, "%s%s%s%*s%s" FIRST_EVENT "%s", begins, name, others,
                          OTHERS_BYTES, "", goes_on, (long)getpid(), ends);
    problem = ftruncate(file, 0) ? errno : write_all(file, text, (size_t)length, 0);
  }
  joined = true;
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
    if (!problem && !joined) {
      joined = true;
      join(file, true, &problem);
    }
    if (problem && problem != EBADMSG && !ftruncate(file, at)) /* as before: that had room */
      write_all(file, ends, sizeof ends - 1, at);
    close_locked(file);
  }
  free(whole);
  return problem;
}

int mgpu_trace_file_fork(void) {
  joined = false; /* what runs another program then has nothing to add */
  return strstr(setting_text, "%p") ? begin() : 0;
}

const char *mgpu_trace_file_words(int code) {
  return code == EINVAL    ? "it is no regular file"
         : code == EBADMSG ? "something else has changed it"
                           : strerror(code);
}

const char *mgpu_trace_file_path(void) { return path[0] ? path : setting_text; }
