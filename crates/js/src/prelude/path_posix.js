(function (natives, internal) {
  'use strict';
  return internal.builtin('path').posix;
})
