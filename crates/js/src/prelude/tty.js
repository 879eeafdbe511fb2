// `tty`: whether a standard stream is a terminal.
(function (natives, internal) {
  'use strict';
  return { isatty: (fd) => Number.isInteger(fd) && fd >= 0 && fd <= 2 && natives.isTerminal(fd) };
})
