/* Shifts the wall clock of one process by the seconds in the file that CLOCK_SHIFT names; for tests of clock steps. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift(void) {
  static int file = -1;
  char text[32] = {0};
  if (file < 0) file = open(getenv("CLOCK_SHIFT"), O_RDONLY);
  if (file < 0 || pread(file, text, sizeof text - 1, 0) <= 0) return 0;
  return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec += shift();
  return result;
}

int gettimeofday(struct timeval *time, void *zone) {
  struct timespec now;
  int result = clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return result;
}

time_t time(time_t *place) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (place) *place = now.tv_sec;
  return now.tv_sec;
}
